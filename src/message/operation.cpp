#include "message/operation.hpp"

#include "job/group.hpp"
#include "message/context.hpp"
#include "message/scattered.hpp"
#include "message/schedule.hpp"
#include "message/unexpected.hpp"

#include <new>

namespace tonari::message {

namespace {

constexpr unsigned spares_max = 256;

/// Memory of destroyed operations, chained through its first words.
///
/// Threads: one list per thread. An operation may be destroyed on a thread that did not make it.
class Spares {
 public:
  Spares() noexcept = default;
  Spares(Spares&&) = delete;
  ~Spares() {
    while (void* memory = take()) free(memory);
    count_ = spares_max;  // operations destroyed on this thread from here on are not kept
  }
  void* take() noexcept {
    void* const memory = first_;
    if (memory == nullptr) return nullptr;
    first_ = *static_cast<void**>(memory);
    --count_;
    return memory;
  }
  void give(void* memory) noexcept {
    if (count_ == spares_max) return free(memory);
    *static_cast<void**>(memory) = first_;
    first_ = memory;
    ++count_;
  }

 private:
  static void free(void* memory) noexcept { ::operator delete (memory, std::align_val_t{alignof(Operation)}); }

  void* first_ = nullptr;
  unsigned count_ = 0;
};

thread_local Spares spares;

}  // namespace

void* Operation::operator new(std::size_t bytes) {
  if (void* const memory = spares.take()) return memory;
  return ::operator new (bytes, std::align_val_t{alignof(Operation)});
}

void Operation::operator delete(void* memory) noexcept { spares.give(memory); }

void Operation::Delete::operator()(Schedule* schedule) const noexcept { delete schedule; }
void Operation::Delete::operator()(Scattered* scattered) const noexcept { delete scattered; }

Result<Envelope> Operation::result() const noexcept {
  if (!progress.has_envelope) return {progress.status, {}};
  const int source = job::position_in(call.context->group(), static_cast<int>(head.source));
  return {progress.status, {Rank{source}, Tag{head.tag}, message_bytes(head)}};
}

bool Operation::schedule_ready() const noexcept { return schedule->ready(); }

}  // namespace tonari::message
