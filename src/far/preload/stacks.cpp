#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/system_calls.hpp"
#include "preload/unreached.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>

// Stacks that the program allocates itself. To deliver a signal, the kernel writes to the stack. Where it cannot bring
// absent pages, it would end the program. So stacks in far memory are replaced by local memory, which the program does
// not see.
TONARI_NEXT(sigaltstack)
TONARI_NEXT(pthread_attr_setstack)

using namespace tonari::preload;

namespace {

struct LocalStack {
  // Set first, by the thread that takes the entry. Relaxed: only that thread uses the rest at once.
  std::atomic<void*> instead_of{nullptr};
  // Acquire and release: a thread that finds it also finds its size.
  std::atomic<std::byte*> start{nullptr};
  std::size_t bytes = 0;
};

// Entries are never given back: a program that uses many stacks allocates them from a few places.
constinit std::array<LocalStack, 512> local_stacks{};

LocalStack* find(const void* stack) noexcept {
  auto* const found = std::ranges::find_if(
      local_stacks, [=](const LocalStack& each) { return each.instead_of.load(std::memory_order_relaxed) == stack; });
  return found != local_stacks.end() ? found : nullptr;
}

LocalStack* take_entry(void* stack) noexcept {
  for (LocalStack& each : local_stacks) {
    void* expected = nullptr;
    if (each.instead_of.compare_exchange_strong(expected, stack, std::memory_order_relaxed)) return &each;
  }
  return nullptr;
}

// Returns local memory in place of the stack, at least as large; nullptr if there is none.
std::byte* local_stack_for(void* stack, std::size_t bytes) noexcept {
  LocalStack* entry = find(stack);
  if (entry != nullptr && entry->start.load(std::memory_order_acquire) != nullptr && entry->bytes >= bytes)
    return entry->start.load(std::memory_order_relaxed);
  if (entry == nullptr) entry = take_entry(stack);
  if (entry == nullptr) return nullptr;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  const std::size_t whole = to_whole_pages(bytes);
  const long at = system_call(SYS_mmap, nullptr, whole, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return nullptr;
  entry->bytes = whole;
  auto* const start = static_cast<std::byte*>(pointer_to(static_cast<Address>(at)));
  entry->start.store(start, std::memory_order_release);
  return start;
}

// The stack as the program knows it.
void show_as_own(stack_t& stack) noexcept {
  for (const LocalStack& each : local_stacks) {
    if (stack.ss_sp != nullptr && each.start.load(std::memory_order_acquire) == stack.ss_sp) {
      stack.ss_sp = each.instead_of.load(std::memory_order_relaxed);
      return;
    }
  }
}

}  // namespace

TONARI_EXPORTED int sigaltstack(const stack_t* stack, stack_t* before) noexcept {
  stack_t wanted{};
  stack_t previous{};
  if (stack != nullptr) {
    wanted = *stack;  // may be absent
    if ((wanted.ss_flags & SS_DISABLE) == 0 && is_unreached(wanted.ss_sp, wanted.ss_size)) {
      wanted.ss_sp = local_stack_for(wanted.ss_sp, wanted.ss_size);
      if (wanted.ss_sp == nullptr) return failed(ENOMEM, -1);
    }
  }
  const int answer = next::sigaltstack(stack != nullptr ? &wanted : nullptr, before != nullptr ? &previous : nullptr);
  if (before == nullptr || answer != 0) return answer;
  show_as_own(previous);
  *before = previous;
  return 0;
}

TONARI_EXPORTED int pthread_attr_setstack(pthread_attr_t* attributes, void* start, std::size_t bytes) noexcept {
  if (bytes != 0 && is_unreached(start, bytes)) start = local_stack_for(start, bytes);
  return start != nullptr ? next::pthread_attr_setstack(attributes, start, bytes) : ENOMEM;
}
