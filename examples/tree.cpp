// A search tree that all ranks grow, in shared memory: how often each word of a text occurs. Nodes are made by
// whichever rank finds a word first, and linked by plain pointers, which mean the same in all ranks, on whatever hosts.
//
//   tonari run -n 4 ./tree [words]

#include <tonari/tonari.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Word = std::array<char, 8>;

struct Node {
  Word word;
  std::uint64_t count;
  Node* before;
  Node* behind;
};

void expect_ok(tonari::Status status) {
  if (status == tonari::Status::ok) return;
  throw std::runtime_error(std::string(tonari::explain(status)));
}

/// One tree for each first letter, with a lock of its own: ranks seldom wait for each other.
class Forest {
 public:
  explicit Forest(tonari::Job& job) : heap_(job, std::uint64_t{64} << 20), roots_(job, letters) {
    for (std::size_t i = 0; i < letters; ++i) locks_.emplace_back(job);
  }

  void count(const Word& word) {
    const auto letter = static_cast<std::size_t>(word[0] - 'a');
    const auto lock = locks_[letter].lock();
    expect_ok(lock.status());  // not locked if the rank that manages it died
    Node** place = &roots_[letter];
    while (*place != nullptr && (*place)->word != word) {
      place = word < (*place)->word ? &(*place)->before : &(*place)->behind;
    }
    if (*place == nullptr) *place = tonari::new_shared<Node>(heap_, word);
    ++(*place)->count;
  }

  /// Calls visit(node) in alphabetical order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const Node* const root : roots_) walk(root, visit);
  }

 private:
  static constexpr std::size_t letters = 26;

  template <class Visit>
  static void walk(const Node* node, Visit visit) {
    if (node == nullptr) return;
    walk(node->before, visit);
    visit(*node);
    walk(node->behind, visit);
  }

  tonari::shared_heap heap_;
  tonari::shared_array<Node*> roots_;
  std::vector<tonari::share::mutex> locks_;
};

/// The text: short words, some much more often than others.
Word word_at(std::size_t place) {
  Word word{};
  std::uint64_t number = place * 0x9e37'79b9'7f4a'7c15 >> 40;
  number = number % (number % 1000 + 1);
  for (std::size_t i = 0; i == 0 || number != 0; ++i, number /= 26) word.at(i) = static_cast<char>('a' + number % 26);
  return word;
}

int run(int argc, char** argv) {
  tonari::Job job;
  const std::size_t words = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;

  Forest forest(job);
  expect_ok(tonari::share::parallel_for(job, words, [&](std::size_t i) { forest.count(word_at(i)); }));

  std::uint64_t counted = 0;
  std::uint64_t different = 0;
  const Node* last = nullptr;
  bool in_order = true;
  forest.for_each([&](const Node& node) {
    counted += node.count;
    ++different;
    in_order = in_order && (last == nullptr || last->word < node.word);
    last = &node;
  });
  const auto [status, right] = tonari::share::sum(job, counted == words && in_order ? 1 : 0);  // as many ranks
  expect_ok(status);
  if (job.rank() == 0) {
    std::printf("tree: %zu words, %zu different ones, counted by %d ranks; %d see the same tree\n", words,
                static_cast<std::size_t>(different), job.size(), right);
  }
  return right == job.size() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const tonari::SetupError& error) {  // the job cannot be joined: the text says why, and what helps
    std::fprintf(stderr, "tree: %s\n", error.what());
    return 1;
  } catch (const tonari::HeapFull& error) {
    std::fprintf(stderr, "tree: %s\n", error.what());
    return 1;
  }
}
