#pragma once

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <type_traits>

// System calls without errno, which belongs to the program, or in an agent to another thread.
namespace tonari::preload {

/// Returns the kernel's result: a negative error number on failure.
inline long system_call_of_six(long number, const std::array<long, 6>& words) noexcept {
#if defined(__x86_64__)
  long result = number;
  register long fourth asm("r10") = words[3];
  register long fifth asm("r8") = words[4];
  register long sixth asm("r9") = words[5];
  asm volatile("syscall"
               : "+a"(result)
               : "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(fourth), "r"(fifth), "r"(sixth)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long which asm("x8") = number;
  register long result asm("x0") = words[0];
  register long second asm("x1") = words[1];
  register long third asm("x2") = words[2];
  register long fourth asm("x3") = words[3];
  register long fifth asm("x4") = words[4];
  register long sixth asm("x5") = words[5];
  asm volatile("svc #0"
               : "+r"(result)
               : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
               : "memory");
  return result;
#else
#error "preloads know the system calls of x86-64 and aarch64"
#endif
}

template <class... Arguments>
long system_call(long number, Arguments... arguments) noexcept {
  [[maybe_unused]] const auto word = [](auto argument) {
    if constexpr (std::is_null_pointer_v<decltype(argument)>) {
      return 0L;
    } else if constexpr (std::is_pointer_v<decltype(argument)>) {
      return reinterpret_cast<long>(argument);
    } else {
      return static_cast<long>(argument);
    }
  };
  return system_call_of_six(number, {word(arguments)...});
}

constexpr bool is_error(long answer) noexcept { return answer < 0 && answer >= -4095; }
/// Returns the error number, or 0 on success.
constexpr int error_of(long answer) noexcept { return is_error(answer) ? static_cast<int>(-answer) : 0; }

/// Whether the futex is shared among this program's threads or with the keeper.
enum class With : int { threads = FUTEX_PRIVATE_FLAG, keeper = 0 };

/// Sleeps while `word` equals `seen`, at most for `limit` if it is given. May return early. Returns true if the limit
/// was reached.
inline bool wait_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, With with,
                    const timespec* limit = nullptr) noexcept {
  return system_call(SYS_futex, &word, FUTEX_WAIT | static_cast<int>(with), seen, limit, nullptr, 0) == -ETIMEDOUT;
}
inline void wake(std::atomic<std::uint32_t>& word, int sleepers, With with) noexcept {
  (void)system_call(SYS_futex, &word, FUTEX_WAKE | static_cast<int>(with), sleepers, nullptr, nullptr, 0);
}

/// Sleeps about as long as a short system call of another thread may take.
inline void pause_shortly() noexcept {
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
  (void)system_call(SYS_nanosleep, &pause, nullptr);
}

/// Requests to a descriptor, for pager::kernel.
struct ControlCalls {
  int descriptor;
  template <class Wanted>
  [[nodiscard]] int control(unsigned long code, Wanted& request) const noexcept {
    return error_of(system_call(SYS_ioctl, descriptor, code, &request));
  }
  static void yield() noexcept { (void)system_call(SYS_sched_yield); }
};

}  // namespace tonari::preload
