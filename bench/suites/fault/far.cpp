// Question: what does it cost to read, and to write, 4 KiB somewhere in memory that is partly local?
// Method:   one thread. Pages are chosen at random, with equal probability; an entire page is read (and checked) or
//           written. The first accesses, as many as there are pages, are dropped, since the data was written in order,
//           and later accesses no longer depend on that. Each is timed by itself.
// Output:   latency in us, one sample per access, whether its page was local or not; rate, accesses per second; wrong
//           pages.
// Options:  --size=BYTES

#include "harness/far_program.hpp"

#include <algorithm>

namespace {

using namespace tonari::bench;
using namespace tonari::bench::far;

constexpr std::size_t page_words = 512;
constexpr std::size_t accesses_max = 200'000;

/// Returns the value of all words of a page except the first, which is the number of its writes, `version`.
std::uint64_t content(std::size_t page, std::uint64_t version) { return mix(page * 1000 + version); }

void write_page(std::uint64_t* page, std::size_t index, std::uint64_t version) {
  page[0] = version;
  std::fill_n(page + 1, page_words - 1, content(index, version));
}

bool read_page(const std::uint64_t* page, std::size_t index) {
  const std::uint64_t expected = content(index, page[0]);
  std::uint64_t differs = 0;
  for (std::size_t i = 1; i < page_words; ++i) differs |= page[i] ^ expected;
  return differs == 0;
}

class Pages {
 public:
  Pages(std::uint64_t* data, std::size_t count) : data_(data), count_(count) {
    for (std::size_t i = 0; i < count; ++i) write_page(page(i), i, 0);
  }

  void access(bool writes) {
    const std::size_t index = mix(++accesses_) % count_;
    if (writes) {
      write_page(page(index), index, accesses_);
    } else {
      wrong_ += read_page(page(index), index) ? 0 : 1;
    }
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double wrong() const { return static_cast<double>(wrong_); }

 private:
  [[nodiscard]] std::uint64_t* page(std::size_t index) const { return data_ + index * page_words; }

  std::uint64_t* data_;
  std::size_t count_;
  std::uint64_t accesses_ = 0;
  std::size_t wrong_ = 0;
};

void ask(Pages& pages, bool writes, const Options& options, Output& output) {
  const double budget_s = options.number("budget-s", 3);
  const double begun_s = now_s();
  for (std::size_t i = 0; i < pages.count() && now_s() - begun_s < budget_s; ++i) pages.access(writes);

  std::vector<double> latencies_us;
  latencies_us.reserve(accesses_max);
  const double start_s = now_s();
  double before_s = start_s;
  while (latencies_us.size() < accesses_max && before_s - start_s < budget_s) {
    pages.access(writes);
    const double after_s = now_s();
    latencies_us.push_back((after_s - before_s) * 1e6);
    before_s = after_s;
  }
  const double rate = static_cast<double>(latencies_us.size()) / (before_s - start_s);

  Answers answers(options, output, writes ? "random-write" : "random-read");
  answers.add("latency", "us", latencies_us);
  answers.add("rate", "1/s", {rate});
}

void measure(const Options& options, Output& output) {
  const auto bytes = static_cast<std::size_t>(options.number("size", 768 << 20));
  const Data data(options, bytes);
  Pages pages(data.array<std::uint64_t>(0, 1), bytes / sizeof(std::uint64_t) / page_words);
  ask(pages, false, options, output);
  ask(pages, true, options, output);
  Answers(options, output, "random-read").check("wrong", pages.wrong(), 1);
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, measure); }
