#pragma once

#include "job/arena.hpp"
#include "message/context.hpp"
#include "message/host_collectives.hpp"
#include "message/operation.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tonari::message {

/// A collective as one rank plays it: rounds of messages that go on side by side, each followed by local work. Written
/// down at its start, played by whoever waits for it.
///
/// Threads: its asker alone, but for the operations of the running round.
class Schedule {
 public:
  Schedule(Context& context, job::Wait what) noexcept
      : context_(context), what_(what), tag_(static_cast<int>(context.next_collective())) {}
  /// One through shared memory instead.
  Schedule(Context& context, job::Wait what, const SharedCollective& shared) noexcept
      : context_(context), what_(what), shared_(shared) {}
  ~Schedule();

  // Writing it down: all go into the last round; peers are ranks of the communicator. Throw std::bad_alloc.
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);
  /// After the round's messages, in the order they are written down: into[i] = operation(into[i], from[i]).
  void fold(std::span<std::byte> into, std::span<const std::byte> from, detail::Reduction reduction);
  /// The same, into = from.
  void copy(std::span<std::byte> into, std::span<const std::byte> from);
  void next_round() { rounds_.emplace_back(); }
  /// Ends with this status, and plays its part with empty messages until then: the others may wait for them.
  void fail(Status status) noexcept {
    status_ = status;
    disagrees_ = true;
  }
  /// Memory that lives as long as the schedule.
  std::span<std::byte> scratch(std::size_t bytes);

  /// Plays on as far as it goes; completes `self` after the last round or at the first failure. Only where the ranks do
  /// not agree about sizes it goes on, with empty messages, by which the others learn of it: they may wait for this
  /// one.
  fabric::Step advance(Operation& self) noexcept;
  [[nodiscard]] bool ready() const noexcept;
  /// Which collective it is, for status.
  [[nodiscard]] job::Wait what() const noexcept { return what_; }
  [[nodiscard]] const SharedCollective* shared() const noexcept { return shared_ ? &*shared_ : nullptr; }
  /// Ends one through shared memory before its time, if that can be.
  void give_up() noexcept {
    if (shared_) shared_->give_up();
  }
  template <class Visit>
  void for_each_running(Visit&& visit) const noexcept {
    for (Operation* operation : running_) visit(*operation);
  }

 private:
  struct Message {
    std::byte* bytes;
    std::size_t count;
    int peer;
    bool is_send;
  };
  struct Local {
    std::byte* into;
    const std::byte* from;
    std::size_t bytes;
    detail::Reduction reduction;  // without a fold: a copy
  };
  struct Round {
    std::vector<Message> messages;
    std::vector<Local> locals;
  };

  void start_round(bool waited);
  static void play(const Local& local) noexcept;
  static void complete(Operation& self, Status status) noexcept;
  bool finish_running(bool& retry) noexcept;

  Context& context_;
  job::Wait what_;
  std::optional<SharedCollective> shared_;
  int tag_ = 0;
  std::vector<Round> rounds_{1};
  std::size_t round_ = 0;
  bool round_started_ = false;
  Status status_ = Status::ok;
  bool disagrees_ = false;  // a message was too long or too short
  std::vector<Operation*> running_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
};

}  // namespace tonari::message
