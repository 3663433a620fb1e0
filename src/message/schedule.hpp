#pragma once

#include "job/arena.hpp"
#include "message/context.hpp"
#include "message/host_collectives.hpp"
#include "message/operation.hpp"
#include "message/rounds.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace tonari::message {

/// A collective by messages, as executed by one rank: Rounds and their progress. All rounds are recorded at its start
/// and executed by the thread that waits for it.
///
/// Threads: its owning thread only, except for the operations of the current round.
class Schedule : public Rounds {
 public:
  /// `number`: of the collective, see Context::next_collective() and next_persistent().
  Schedule(Context& context, job::Wait what, std::uint32_t number) noexcept
      : context_(context), what_(what), tag_(static_cast<int>(number)) {}
  /// Wraps a collective through shared memory instead, see share().
  Schedule(Context& context, job::Wait what) noexcept : context_(context), what_(what) {}
  ~Schedule();

  /// Executes a collective through shared memory before anything else, and completes it by messages if it needs them.
  /// Then only local work may be recorded.
  void share(const SharedCollective& collective) noexcept { shared_ = collective; }
  /// Replaces the number. Called before the first message is sent.
  void set_number(std::uint32_t number) noexcept { tag_ = static_cast<int>(number); }
  /// Makes the collective end with this status. Until then it takes part with empty messages, because other ranks may
  /// wait for them.
  void fail(Status status) noexcept {
    status_ = recorded_status_ = status;
    disagrees_ = true;
  }
  /// Keeps an object as long as the schedule.
  void keep_alive(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }

  /// Makes the schedule outlive its operation: it belongs to its maker, and can be executed again.
  void persist() noexcept { is_persistent_ = true; }
  [[nodiscard]] bool is_persistent() const noexcept { return is_persistent_; }
  /// Prepares a persistent schedule to be executed from its first round on.
  void rewind() noexcept;

  /// Advances as far as possible; completes `self` after the last round or at the first failure. If the ranks disagree
  /// about sizes, it continues with empty messages instead of failing: other ranks may wait for this one, and learn of
  /// the error from them.
  fabric::Step advance(Operation& self) noexcept;
  [[nodiscard]] bool ready() const noexcept;
  /// Kind of the collective, for `tonari status`.
  [[nodiscard]] job::Wait what() const noexcept { return what_; }
  /// The collective through shared memory that it executes now, or null.
  [[nodiscard]] const SharedCollective* shared() const noexcept {
    return shared_ && !is_shared_done_ ? &*shared_ : nullptr;
  }
  /// Ends a collective through shared memory early, if that is possible.
  void give_up() noexcept {
    if (shared_) shared_->give_up();
  }
  /// Has `finish` called by the owning thread once all messages are done: with the status so far, it returns the status
  /// of the collective. It must not throw.
  void at_end(std::function<Status(Status)> finish) { at_end_ = std::move(finish); }
  template <class Visit>
  void for_each_running(Visit&& visit) const noexcept {
    for (Operation* operation : running_) visit(*operation);
  }

 private:
  Operation& make_operation(const Message& message);
  void start_round(bool waited);
  fabric::Step play_shared() noexcept;
  static void play(const Local& local) noexcept;
  void complete(Operation& self, Status status) noexcept;
  bool finish_running(bool& retry) noexcept;

  Context& context_;
  job::Wait what_;
  std::optional<SharedCollective> shared_;
  bool is_shared_done_ = false;
  bool is_persistent_ = false;
  int tag_ = 0;
  std::size_t round_ = 0;
  bool round_started_ = false;
  Status status_ = Status::ok;
  Status recorded_status_ = Status::ok;  // as fail() set it
  bool disagrees_ = false;               // a message was too long or too short
  std::vector<Operation*> running_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::function<Status(Status)> at_end_;
};

}  // namespace tonari::message
