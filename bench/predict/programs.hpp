#pragma once

#include "message/host_groups.hpp"
#include "message/rounds.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tonari::bench::predict {

/// The ranks of a prediction: equally many on each host, the last host excepted, in the order of ranks.
struct Shape {
  int ranks;
  int ranks_per_host = 1;
  int cores = 0;  ///< All ranks share so many cores. 0: each rank has its own.

  [[nodiscard]] int host_of(int rank) const noexcept { return rank / ranks_per_host; }
  [[nodiscard]] int hosts() const noexcept { return host_of(ranks - 1) + 1; }
  /// Returns the groups as a job of this shape makes them: with one host each rank is a group of its own.
  [[nodiscard]] message::HostGroups groups() const;
};

/// The costs of local work in a collective.
struct LocalCosts {
  double copy_us_per_byte;
  double fold_us_per_byte;
};

/// The programs of all ranks, as sequences of steps. 8 bytes per step, so that a barrier of a million ranks fits into
/// memory.
class Programs {
 public:
  enum class Kind : std::uint8_t {
    send,     ///< Starts a send to `peer`.
    receive,  ///< Starts a receive from `peer`.
    wait,     ///< Waits for all started sends and receives.
    work,     ///< The core is busy.
    done,     ///< A receive that has its message.
  };
  static constexpr std::size_t bytes_max = (std::size_t{1} << 29) - 1;

  class Step {
   public:
    static Step message(Kind kind, int peer, std::size_t bytes) noexcept;
    static Step wait() noexcept { return {Kind::wait, 0, 0}; }
    static Step work(double us) noexcept;

    [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(kind_); }
    [[nodiscard]] std::uint32_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] int peer() const noexcept { return static_cast<int>(value_); }
    [[nodiscard]] double us() const noexcept;
    void finish() noexcept { kind_ = static_cast<std::uint32_t>(Kind::done) & 7U; }

   private:
    Step(Kind kind, std::uint32_t bytes, std::uint32_t value) noexcept
        : kind_(static_cast<std::uint32_t>(kind) & 7U), bytes_(bytes & bytes_max), value_(value) {}
    std::uint32_t kind_ : 3;
    std::uint32_t bytes_ : 29;
    std::uint32_t value_;  // the peer, or the bits of a float: us
  };

  /// Begins the program of the next rank. Ranks are added in order, from 0.
  void begin_rank() { starts_.push_back(steps_.size()); }
  // These add to the last program. They throw std::bad_alloc. Messages have at most bytes_max bytes.
  void send(int to, std::size_t bytes) { steps_.push_back(Step::message(Kind::send, to, bytes)); }
  void receive(int from, std::size_t bytes) { steps_.push_back(Step::message(Kind::receive, from, bytes)); }
  void wait() { steps_.push_back(Step::wait()); }
  void work(double us) {
    if (us > 0) steps_.push_back(Step::work(us));
  }
  /// Adds the messages of a round, but no wait.
  void add_messages(const message::Rounds::Round& round);
  /// Adds a collective as recorded.
  void add(const message::Rounds& rounds, const LocalCosts& costs);

  [[nodiscard]] int ranks() const noexcept { return static_cast<int>(starts_.size()); }
  [[nodiscard]] std::size_t start(int rank) const noexcept { return starts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] std::size_t end(int rank) const noexcept {
    return rank + 1 < ranks() ? start(rank + 1) : steps_.size();
  }
  [[nodiscard]] Step& step(std::size_t index) noexcept { return steps_[index]; }

 private:
  std::vector<Step> steps_;
  std::vector<std::size_t> starts_;
};
static_assert(sizeof(Programs::Step) == 8);

}  // namespace tonari::bench::predict
