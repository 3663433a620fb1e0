#include "message/operation.hpp"

#include "job/group.hpp"
#include "message/context.hpp"
#include "message/layout_cursor.hpp"
#include "message/schedule.hpp"
#include "message/unexpected.hpp"

#include <new>

namespace tonari::message {

namespace {

constexpr unsigned spares_max = 256;

/// Memory of destroyed operations, chained through its first words.
///
/// Threads: one list per thread. An operation may be destroyed on a thread that did not make it.
/// Costs:   no test whether the list is constructed, because it has no destructor: see give_slow().
struct Spares {
  void* first = nullptr;
  unsigned room = 0;  // blocks that it may still take in; none before its first use and at the thread's end

  void* take() noexcept {
    void* const memory = first;
    if (memory == nullptr) return nullptr;
    first = *static_cast<void**>(memory);
    ++room;
    return memory;
  }
  void give(void* memory) noexcept {
    if (room == 0) [[unlikely]]
      return give_slow(memory);
    *static_cast<void**>(memory) = first;
    first = memory;
    --room;
  }
  [[gnu::noinline]] void give_slow(void* memory) noexcept;
};

constinit thread_local Spares spares;

void free_memory(void* memory) noexcept { ::operator delete (memory, std::align_val_t{alignof(Operation)}); }

void Spares::give_slow(void* memory) noexcept {
  // Makes room at the thread's first call, and frees the list at the thread's end.
  struct Lifetime {
    Lifetime() noexcept { spares.room = spares_max; }
    Lifetime(Lifetime&&) = delete;
    ~Lifetime() {
      while (void* const spare = spares.take()) free_memory(spare);
      spares.room = 0;
    }
  };
  thread_local const Lifetime lifetime;
  room != 0 ? give(memory) : free_memory(memory);
}

}  // namespace

void* Operation::operator new(std::size_t bytes) {
  if (void* const memory = spares.take()) return memory;
  return ::operator new (bytes, std::align_val_t{alignof(Operation)});
}

void Operation::operator delete(void* memory) noexcept { spares.give(memory); }

void Operation::Delete::operator()(Schedule* owned) const noexcept {
  if (!owned->is_persistent()) delete owned;
}
void Operation::Delete::operator()(LayoutCursor* owned) const noexcept { delete owned; }

Result<Envelope> Operation::result() const noexcept {
  if (!progress.has_envelope) return {progress.status, {}};
  const int source = job::position_in(call.context->peers(), static_cast<int>(head.source));
  return {progress.status, {Rank{source}, Tag{head.tag}, message_bytes(head)}};
}

bool Operation::schedule_ready() const noexcept { return schedule->ready(); }

}  // namespace tonari::message
