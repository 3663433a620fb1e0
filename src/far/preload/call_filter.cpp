#include "far/preload/call_filter.hpp"

#include "far/preload/call_list.hpp"
#include "preload/system_calls.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace tonari::far {

namespace {

using preload::error_of;
using preload::is_error;
using preload::page_bytes;
using preload::pointer_to;
using preload::system_call;

// With these the kernel's own threads use the program's memory, and meet absent pages. Most programs do without them,
// as in containers that forbid them.
constexpr std::array calls_refused{SYS_io_uring_setup, SYS_io_setup};

#if defined(__x86_64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t this_architecture = AUDIT_ARCH_AARCH64;
#endif

/// The filter's program: for each call, a comparison with its number and checks of its arguments. Programs of 32 bits
/// inherit it, too: their numbers mean other calls.
class Filter {
 public:
  constexpr Filter() {
    add(load(offsetof(seccomp_data, arch)));
    add(jump(BPF_JEQ, this_architecture, 1, 0));
    add(answer(SECCOMP_RET_ALLOW));
    add(load(offsetof(seccomp_data, nr)));
    for (const Call& each : calls) add_checks(each);
    for (const long each : calls_refused) {
      add(jump(BPF_JEQ, static_cast<std::uint32_t>(each), 0, 1));
      add(answer(SECCOMP_RET_ERRNO | ENOSYS));
    }
    add(answer(SECCOMP_RET_ALLOW));
  }
  [[nodiscard]] constexpr sock_fprog program() noexcept {
    return {.len = static_cast<unsigned short>(used_), .filter = code_.data()};
  }

 private:
  static constexpr std::size_t argument(unsigned index) { return offsetof(seccomp_data, args) + index * 8; }
  static constexpr sock_filter load(std::size_t offset) {
    return {.code = BPF_LD | BPF_W | BPF_ABS, .jt = 0, .jf = 0, .k = static_cast<std::uint32_t>(offset)};
  }
  static constexpr sock_filter jump(unsigned how, std::uint32_t value, unsigned if_true, unsigned if_false) {
    return {.code = static_cast<std::uint16_t>(BPF_JMP | how | BPF_K),
            .jt = static_cast<std::uint8_t>(if_true),
            .jf = static_cast<std::uint8_t>(if_false),
            .k = value};
  }
  static constexpr sock_filter answer(std::uint32_t what) {
    return {.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = what};
  }
  constexpr void add(sock_filter each) { code_[used_++] = each; }

  constexpr void add_checks(const Call& each) {
    const std::size_t jump_over = used_;
    add({});
    if (each.number == SYS_futex) add_wake_up();
    if (each.has_commands()) add_commands(each);
    for (const Argument& address : each.arguments) {
      if (address.index != Argument::none) add_check(address.index);
    }
    add(answer(SECCOMP_RET_ALLOW));
    code_[jump_over] =
        jump(BPF_JEQ, static_cast<std::uint32_t>(each.number), 0, static_cast<unsigned>(used_ - jump_over - 1));
  }

  constexpr void add_wake_up() {
    add(load(argument(1)));
    add(jump(BPF_JEQ, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0, 1));
    add(answer(SECCOMP_RET_ALLOW));
  }

  // Lets the call pass if it is none of the commands.
  constexpr void add_commands(const Call& each) {
    add(load(argument(each.selector)));
    unsigned rest = static_cast<unsigned>(std::ranges::count_if(each.commands, [](auto one) { return one != 0; }));
    for (const std::uint32_t command : each.commands) {
      if (command != 0) add(jump(BPF_JEQ, command, rest--, 0));
    }
    add(answer(SECCOMP_RET_ALLOW));
  }

  // Compares the upper half of the address with that of the zone. The only code in the zone's first 4 GiB is that of
  // call_unfiltered().
  constexpr void add_check(unsigned index) {
    constexpr std::uint32_t first = zone_start >> 32;
    constexpr std::uint32_t end = (zone_start + zone_bytes) >> 32;
    add(load(argument(index) + 4));
    add(jump(BPF_JGE, first, 0, 5));
    add(jump(BPF_JGE, end, 4, 0));
    add(load(offsetof(seccomp_data, instruction_pointer) + 4));
    add(jump(BPF_JEQ, first, 0, 1));
    add(answer(SECCOMP_RET_ALLOW));
    add(answer(SECCOMP_RET_TRAP | filter_mark));
  }

  std::array<sock_filter, 4096> code_{};  // as many as the kernel allows
  std::size_t used_ = 0;
};
constinit Filter filter{};

// long call_unfiltered(long number, const long words[6])
constexpr auto code = std::to_array<unsigned char>({
#if defined(__x86_64__)
  0xf3, 0x0f, 0x1e, 0xfa,      // endbr64
      0x48, 0x89, 0xf8,        // mov %rdi, %rax
      0x49, 0x89, 0xf3,        // mov %rsi, %r11
      0x49, 0x8b, 0x3b,        // mov (%r11), %rdi
      0x49, 0x8b, 0x73, 0x08,  // mov 8(%r11), %rsi
      0x49, 0x8b, 0x53, 0x10,  // mov 16(%r11), %rdx
      0x4d, 0x8b, 0x53, 0x18,  // mov 24(%r11), %r10
      0x4d, 0x8b, 0x43, 0x20,  // mov 32(%r11), %r8
      0x4d, 0x8b, 0x4b, 0x28,  // mov 40(%r11), %r9
      0x0f, 0x05,              // syscall
      0xc3,                    // ret
#elif defined(__aarch64__)
  0xe8, 0x03, 0x00, 0xaa,      // mov x8, x0
      0xe9, 0x03, 0x01, 0xaa,  // mov x9, x1
      0x20, 0x05, 0x40, 0xa9,  // ldp x0, x1, [x9]
      0x22, 0x0d, 0x41, 0xa9,  // ldp x2, x3, [x9, #16]
      0x24, 0x15, 0x42, 0xa9,  // ldp x4, x5, [x9, #32]
      0x01, 0x00, 0x00, 0xd4,  // svc #0
      0xc0, 0x03, 0x5f, 0xd6,  // ret
#endif
});

int install() noexcept {
  // Without the second flag, some settings of the kernel slow a filtered process down.
  constexpr unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  sock_fprog program = filter.program();
  // With TSYNC the result may also be the number of a thread that has other filters.
  const long done = system_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  return is_error(done) ? error_of(done) : done == 0 ? 0 : EBUSY;
}

}  // namespace

bool can_filter_calls() noexcept {
  const std::uint32_t action = SECCOMP_RET_TRAP;
  return !is_error(system_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
}

int map_unfiltered_code() noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  const long at = system_call(SYS_mmap, zone_start, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return error_of(at);
  int error = at == static_cast<long>(zone_start) ? 0 : EEXIST;  // an address space without these addresses
  if (error == 0) {
    std::memcpy(pointer_to(zone_start), code.data(), code.size());
    __builtin___clear_cache(static_cast<char*>(pointer_to(zone_start)),
                            static_cast<char*>(pointer_to(zone_start)) + code.size());
    error = error_of(system_call(SYS_mprotect, zone_start, page_bytes, PROT_READ | PROT_EXEC));
  }
  if (error != 0) (void)system_call(SYS_munmap, at, page_bytes);
  return error;
}

int filter_calls() noexcept {
  const int error = install();
  if (error != EACCES) return error;
  (void)system_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return install();
}

long call_unfiltered(long number, const std::array<long, 6>& words) {
  return reinterpret_cast<long (*)(long, const long*)>(zone_start)(number, words.data());
}

}  // namespace tonari::far
