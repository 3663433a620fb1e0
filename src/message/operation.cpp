#include "message/operation.hpp"

#include "message/scattered.hpp"
#include "message/schedule.hpp"

#include <new>

namespace tonari::message {

namespace {

constexpr unsigned kept_max = 256;

/// Memory of operations that have ended, chained through its first words.
///
/// Threads: one each; what one thread made may end in another.
class Kept {
 public:
  Kept() noexcept = default;
  Kept(Kept&&) = delete;
  ~Kept() {
    while (void* memory = take()) free(memory);
    count_ = kept_max;  // what ends on this thread from here on is not kept
  }
  void* take() noexcept {
    void* const memory = first_;
    if (memory == nullptr) return nullptr;
    first_ = *static_cast<void**>(memory);
    --count_;
    return memory;
  }
  void give(void* memory) noexcept {
    if (count_ == kept_max) return free(memory);
    *static_cast<void**>(memory) = first_;
    first_ = memory;
    ++count_;
  }

 private:
  static void free(void* memory) noexcept { ::operator delete (memory, std::align_val_t{alignof(Operation)}); }

  void* first_ = nullptr;
  unsigned count_ = 0;
};

thread_local Kept kept;

}  // namespace

void* Operation::operator new(std::size_t bytes) {
  if (void* const memory = kept.take()) return memory;
  return ::operator new (bytes, std::align_val_t{alignof(Operation)});
}

void Operation::operator delete(void* memory) noexcept { kept.give(memory); }

Operation::Operation(Kind what, Context& in) noexcept : kind(what), context(&in) {}
Operation::~Operation() = default;  // where Schedule and Scattered are whole

bool Operation::schedule_ready() const noexcept { return schedule->ready(); }

}  // namespace tonari::message
