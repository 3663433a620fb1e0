// Every rank accesses every other rank's part of a window, round after round, and checks. The arguments are ranks: the
// program ends when they are dead and all others have noticed and gone on. Without arguments it runs for ever, and
// without a death handler. Prints "R is PID", then "rank R is ready", and "rank R did it" after success.
#include "../../support/random.hpp"
#include "../../support/rank.hpp"
#include "../../support/require.hpp"

#include <tonari/tonari.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace tonari;
using test::name;
using test::pattern;
using test::require;
using test::require_ok;
using test::say;

class Rounds {
 public:
  Rounds(Job& job, std::vector<int> victims)
      : job_(job),
        victims_(std::move(victims)),
        memory_(bytes_of_part()),
        own_(job, std::span(memory_)),
        ours_(job, bytes_of_part()) {
    for (int rank = 0; rank < job.size(); ++rank) {
      if (rank != job.rank()) others_.push_back(rank);
    }
  }

  void play() {
    if (!victims_.empty()) tell_deaths();
    say(to_string(job_.rank()) + " is " + std::to_string(::getpid()));
    std::uint64_t round = 0;
    while (victims_.empty() || others_.size() + 1 + victims_.size() != static_cast<std::size_t>(job_.size())) {
      if (round == 10) say(name(job_.rank().value()) + " is ready");
      access_all(round++);
    }
    meet(knows, [&] { access_all(round++); });
    access_all(round);  // all are there, and know
    meet(is_over, [] {});
  }

 private:
  static constexpr std::size_t slice_bytes = 60000;  // of each rank in each part, behind the words
  static constexpr std::size_t words_bytes = 64;
  static constexpr std::uint32_t knows = 0;  // notifications
  static constexpr std::uint32_t is_over = 1;

  [[nodiscard]] std::size_t bytes_of_part() const {
    return words_bytes + static_cast<std::size_t>(job_.size()) * slice_bytes;
  }

  void tell_deaths() {
    job_.on_death([rank = job_.rank()](const Death& death) {
      say(name(rank.value()) + " heard that " + to_string(death.rank) + " of " + death.host + " died");
    });
  }

  /// Both kinds of memory in turn; in every other pair of rounds by a queue.
  void access_all(std::uint64_t round) {
    Window& window = round % 2 == 0 ? ours_ : own_;
    const auto sent = pattern(round * 7919 % slice_bytes, round);
    std::vector<int> gone;
    for (const int other : others_) {
      const Status status = access(window, other, sent, round % 4 < 2);
      if (status == Status::peer_gone) {
        gone.push_back(other);
      } else {
        require_ok(status);
      }
    }
    for (const int each : gone) notice(each);
  }

  /// Returns the first failure.
  Status access(Window& window, int other, const std::vector<std::byte>& sent, bool posted) {
    const GlobalAddress there = window.at(JobRank{other}, words_bytes + job_.rank().index() * slice_bytes);
    std::vector<std::byte> got(sent.size());
    std::array all{Descriptor::lock(JobRank{other}), Descriptor::push(there, sent), Descriptor::pull(got, there),
                   Descriptor::fetch_add(window.at(JobRank{other}), std::uint64_t{1}),
                   Descriptor::unlock(JobRank{other})};
    if (posted) {
      Queue queue(window);
      require_ok(queue.post(all));
      const Status status = queue.wait_all();
      if (status != Status::ok) return status;
    } else {
      const Status locked = window.lock(JobRank{other});
      if (locked != Status::ok && locked != Status::holder_died) return locked;
      Status status = window.push(there, sent);
      if (status == Status::ok) status = window.pull(got, there);
      if (status == Status::ok) status = window.fetch_add(window.at(JobRank{other}), std::uint64_t{1}).status;
      require_ok(window.unlock(JobRank{other}));
      if (status != Status::ok) return status;
    }
    require(got == sent, "what was pulled is not what was pushed");
    return Status::ok;
  }

  void notice(int other) {
    require(std::ranges::find(victims_, other) != victims_.end(), name(other) + " is gone, and was not to");
    std::erase(others_, other);
    say(name(job_.rank().value()) + " saw peer_gone of " + std::to_string(other));
  }

  /// Tells the others, and does something until all have told.
  template <class Body>
  void meet(std::uint32_t what, const Body& body) {
    for (const int other : others_) require_ok(ours_.push_notified(ours_.at(JobRank{other}), {}, what));
    while (ours_.notified(what) != others_.size()) body();
  }

  Job& job_;
  std::vector<int> victims_;
  std::vector<int> others_;  // that are not gone
  std::vector<std::byte> memory_;
  Window own_;
  Window ours_;
};

}  // namespace

int main(int argc, char** argv) {
  return test::run_rank(argc, argv, [](Job& job, const std::vector<std::string>& arguments) {
    std::vector<int> victims;
    for (const std::string& each : arguments) victims.push_back(std::stoi(each));
    Rounds(job, victims).play();
  });
}
