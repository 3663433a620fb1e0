#include "far/preload/guardian.hpp"

#include "far/preload/helpers.hpp"
#include "preload/lock.hpp"

#include <sys/prctl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

namespace tonari::far {

using namespace preload;  // its tools

namespace {

constexpr std::size_t stack_bytes = 16 << 10;

struct Guardian {
  std::array<int, 2> kept{};              // line, userfaultfd
  std::atomic<std::uint32_t> settled{0};  // 1: it has closed all other descriptors
  std::atomic<std::uint32_t> doorbell{0};
};
constinit Guardian guardian{};
alignas(16) constinit std::array<std::byte, stack_bytes> stack{};

[[noreturn]] void guard() noexcept {
  (void)system_call(SYS_prctl, PR_SET_NAME, "tonari-guardian", 0, 0, 0);
  const int line = guardian.kept[0];
  close_all_but(guardian.kept);
  Follower credentials(guardian.doorbell);
  guardian.settled.store(1, std::memory_order_release);  // release: pairs with start_guardian()
  wake(guardian.settled, 1, With::threads);
  for (;;) {
    constexpr timespec patience{.tv_sec = patience_s, .tv_nsec = 0};
    const std::uint32_t seen = guardian.doorbell.load(std::memory_order_acquire);
    credentials.follow();
    if (wait_on(guardian.doorbell, seen, With::keeper, &patience) && has_closed(line)) end_program();
  }
}

}  // namespace

int start_guardian(int line, int faults) noexcept {
  guardian.kept = {line, faults};
  guardian.settled.store(0, std::memory_order_relaxed);  // a child of a child inherits its parent's 1
  const WithoutSignals inherited;
  const long thread = clone_helper(guard, stack.data() + stack.size());
  if (is_error(thread)) return error_of(thread);
  while (guardian.settled.load(std::memory_order_acquire) == 0) wait_on(guardian.settled, 0, With::threads);
  return 0;
}

}  // namespace tonari::far
