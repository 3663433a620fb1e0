#include "far/preload/trapped_calls.hpp"

#include "far/preload/call_filter.hpp"
#include "far/preload/call_list.hpp"
#include "far/preload/faults.hpp"
#include "far/preload/owned_signals.hpp"
#include "far/preload/program.hpp"
#include "preload/masks.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>

// The handler of SIGSYS makes the calls that the filter has stopped. Calls that transfer data go through the wrappers,
// which use local memory (preload/wrapping.cpp). In any other call, structures are replaced by local copies. If texts
// or data of unknown length remain, their pages are brought, and the call is repeated if a page has left meanwhile.
namespace tonari::far {

namespace {

using Words = std::array<long, 6>;

constexpr int by_filter = 1;  // SYS_SECCOMP, which libc's headers do not have

// The registers of a stopped call.
class Registers {
 public:
#if defined(__x86_64__)
  explicit Registers(void* context) noexcept : all_(static_cast<ucontext_t*>(context)->uc_mcontext.gregs) {}
  [[nodiscard]] Words words() const noexcept {
    return {all_[REG_RDI], all_[REG_RSI], all_[REG_RDX], all_[REG_R10], all_[REG_R8], all_[REG_R9]};
  }
  void set_result(long result) noexcept { all_[REG_RAX] = result; }

 private:
  greg_t* all_;
#elif defined(__aarch64__)
  explicit Registers(void* context) noexcept : all_(static_cast<ucontext_t*>(context)->uc_mcontext.regs) {}
  [[nodiscard]] Words words() const noexcept {
    const auto word = [this](int i) { return static_cast<long>(all_[i]); };
    return {word(0), word(1), word(2), word(3), word(4), word(5)};
  }
  void set_result(long result) noexcept { all_[0] = static_cast<unsigned long long>(result); }

 private:
  unsigned long long* all_;
#endif
};

template <class Type>
Type* as(long word) noexcept {
  return static_cast<Type*>(pointer_to(static_cast<Address>(word)));
}

// Returns the result of a libc function as the kernel would.
long result_of(long answer) noexcept { return answer == -1 ? -errno : answer; }

bool is_far(long word) noexcept { return preload::is_unreached(as<void>(word), 1); }

// The call that a wrapper makes for this thread. Wrappers leave wrong counts and protected memory to the kernel: then
// the same call comes back here.
struct Wrapped {
  const Call* call = nullptr;
  Words words{};

  [[nodiscard]] bool is_same(const Call& other, const Words& others) const noexcept {
    return call == &other && std::ranges::all_of(other.arguments, [&](const Argument& each) {
             return each.index == Argument::none || words[each.index] == others[each.index];
           });
  }
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Wrapped wrapped{};

// Calls that take data from somewhere, or pass it on: the wrappers copy it. Returns nothing for any other call.
std::optional<long> transfer(long number, const Words& w) {
  const auto number_of = [&](int i) { return static_cast<int>(w[static_cast<std::size_t>(i)]); };
  const auto bytes = static_cast<std::size_t>(w[2]);
  switch (number) {
    case SYS_read: return result_of(::read(number_of(0), as<void>(w[1]), bytes));
    case SYS_write: return result_of(::write(number_of(0), as<void>(w[1]), bytes));
    case SYS_pread64: return result_of(::pread(number_of(0), as<void>(w[1]), bytes, w[3]));
    case SYS_pwrite64: return result_of(::pwrite(number_of(0), as<void>(w[1]), bytes, w[3]));
    case SYS_readv: return result_of(::readv(number_of(0), as<iovec>(w[1]), number_of(2)));
    case SYS_writev: return result_of(::writev(number_of(0), as<iovec>(w[1]), number_of(2)));
    case SYS_preadv: return result_of(::preadv(number_of(0), as<iovec>(w[1]), number_of(2), w[3]));
    case SYS_pwritev: return result_of(::pwritev(number_of(0), as<iovec>(w[1]), number_of(2), w[3]));
    case SYS_preadv2: return result_of(::preadv2(number_of(0), as<iovec>(w[1]), number_of(2), w[3], number_of(5)));
    case SYS_pwritev2: return result_of(::pwritev2(number_of(0), as<iovec>(w[1]), number_of(2), w[3], number_of(5)));
    case SYS_recvfrom:
      return result_of(
          ::recvfrom(number_of(0), as<void>(w[1]), bytes, number_of(3), as<sockaddr>(w[4]), as<socklen_t>(w[5])));
    case SYS_sendto:
      return result_of(::sendto(number_of(0), as<void>(w[1]), bytes, number_of(3), as<sockaddr>(w[4]),
                                static_cast<socklen_t>(w[5])));
    case SYS_recvmsg: return result_of(::recvmsg(number_of(0), as<msghdr>(w[1]), number_of(2)));
    case SYS_sendmsg: return result_of(::sendmsg(number_of(0), as<msghdr>(w[1]), number_of(2)));
    case SYS_recvmmsg:
      return result_of(
          ::recvmmsg(number_of(0), as<mmsghdr>(w[1]), static_cast<unsigned>(w[2]), number_of(3), as<timespec>(w[4])));
    case SYS_sendmmsg:
      return result_of(::sendmmsg(number_of(0), as<mmsghdr>(w[1]), static_cast<unsigned>(w[2]), number_of(3)));
    case SYS_vmsplice: return result_of(::vmsplice(number_of(0), as<iovec>(w[1]), bytes, static_cast<unsigned>(w[3])));
    case SYS_getrandom:
      return result_of(::getrandom(as<void>(w[0]), static_cast<std::size_t>(w[1]), static_cast<unsigned>(w[2])));
    case SYS_accept: return result_of(::accept(number_of(0), as<sockaddr>(w[1]), as<socklen_t>(w[2])));
    case SYS_accept4: return result_of(::accept4(number_of(0), as<sockaddr>(w[1]), as<socklen_t>(w[2]), number_of(3)));
    case SYS_wait4: return result_of(::wait4(number_of(0), as<int>(w[1]), number_of(2), as<rusage>(w[3])));
    default: return {};
  }
}

std::optional<long> transfer_by_wrapper(const Call& call, const Words& words) {
  wrapped = {&call, words};
  int state = 0;
  // A raw call ends no thread.
  (void)::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  const std::optional<long> result = transfer(call.number, words);
  (void)::pthread_setcancelstate(state, nullptr);
  wrapped = {};
  return result;
}

// Brings `count` pages from `word` on, if it is an address of far memory. Returns true if it is, and no page is lost.
bool bring_pages(long word, std::size_t count) noexcept {
  if (!is_far(word)) return false;
  const auto start = static_cast<Address>(word);
  for (std::size_t i = 0; i < count; ++i) {
    const Address at = i == 0 ? start : (start / page_bytes + i) * page_bytes;
    switch (bring(at)) {
      case Bringing::here: break;
      case Bringing::lost: return false;
      // A forked child has its parent's far memory. Only the first page is known to be the program's to touch.
      case Bringing::not_far: return i != 0 || touch(preload::Bytes{pointer_to(at), 1});
    }
  }
  return true;
}

std::size_t bytes_of(const Argument& argument, const Words& words) noexcept {
  if (argument.count == Argument::none) return argument.bytes;
  const auto count = static_cast<std::size_t>(words[argument.count]);
  constexpr std::size_t count_max = 1 << 20;  // otherwise the kernel reports an error
  return count <= count_max ? argument.bytes + count * argument.bytes_each : 0;
}

bool is_far_structure(const Argument& argument, const Words& words) noexcept {
  return argument.index != Argument::none && is_far(words[argument.index]) && bytes_of(argument, words) != 0;
}

bool is_protected_structure(const Argument& argument, const Words& words) noexcept {
  return is_far_structure(argument, words) &&
         !preload::is_accessible(as<void>(words[argument.index]), bytes_of(argument, words), Access::write);
}

// Local copies of a call's structures in far memory, which it reads or writes. Protected ones are left to the kernel:
// their pages stay once they are here.
class LocalStructures {
 public:
  LocalStructures(const Call& call, const Words& words) noexcept : words_(words), local_(all_bytes(call)) {
    std::byte* next = local_.start();
    if (next == nullptr) return;  // without memory, all of them are repeated
    for (const Argument& each : call.arguments) {
      const std::size_t bytes = far_bytes(each);
      if (bytes == 0) continue;
      std::memcpy(next, as<void>(words[each.index]), bytes);
      words_[each.index] = static_cast<long>(address_of(next));
      next += padded(bytes);
    }
  }
  [[nodiscard]] const Words& words() const noexcept { return words_; }
  // Other threads may write to memory that the call has only read.
  void write_back(const Call& call, const Words& words) const noexcept {
    for (const Argument& each : call.arguments) {
      if (each.index == Argument::none || words[each.index] == words_[each.index]) continue;
      const std::size_t bytes = bytes_of(each, words);
      void* const to = as<void>(words[each.index]);
      const void* const from = as<void>(words_[each.index]);
      if (std::memcmp(to, from, bytes) != 0) std::memcpy(to, from, bytes);
    }
  }

 private:
  static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }
  [[nodiscard]] std::size_t far_bytes(const Argument& each) const noexcept {
    return is_far_structure(each, words_) && !is_protected_structure(each, words_) ? bytes_of(each, words_) : 0;
  }
  [[nodiscard]] std::size_t all_bytes(const Call& call) const noexcept {
    std::size_t bytes = 0;
    for (const Argument& each : call.arguments) bytes += padded(far_bytes(each));
    return bytes;
  }

  Words words_;
  Local local_;
};

// Their addresses are in memory.
void touch_texts(const Words& words) noexcept {
  (void)touch(preload::Text{as<const char>(words[0])});
  (void)touch(preload::Texts{as<char* const>(words[1])});
  (void)touch(preload::Texts{as<char* const>(words[2])});
}

constexpr int once = 1;
constexpr int until_invalid = 100;  // then the memory itself is

long make_repeatedly(const Call& call, const Words& words, int tries_max) {
  constexpr std::size_t pages_max = 32;  // of one argument
  std::size_t pages = tries_max == once ? 2 : 1;
  for (int tries = 1;; ++tries) {
    bool has_far = false;
    if (call.number == SYS_execve) touch_texts(words);
    for (const Argument& each : call.arguments) {
      if (each.index != Argument::none) has_far |= bring_pages(words[each.index], pages);
    }
    const long result = call_unfiltered(call.number, words);
    if (result != -EFAULT || !has_far || tries == tries_max) return result;
    pages = std::min(2 * pages, pages_max);
  }
}

long make(const Call& call, const Words& words) {
  // Otherwise a wrapper would not know the memory, and make the same call.
  const bool is_known = std::ranges::any_of(
      call.arguments, [&](const Argument& each) { return each.index != Argument::none && is_far(words[each.index]); });
  if (!is_known) return call_unfiltered(call.number, words);
  if (wrapped.is_same(call, words)) {
    wrapped = {};
    return make_repeatedly(call, words, once);
  }
  if (const std::optional<long> result = transfer_by_wrapper(call, words)) return *result;
  // With a protected structure, the kernel may return EFAULT after it has done the call.
  const bool is_protected =
      std::ranges::any_of(call.arguments, [&](const Argument& each) { return is_protected_structure(each, words); });
  const LocalStructures local(call, words);
  const long result = make_repeatedly(call, local.words(), is_protected ? once : until_invalid);
  local.write_back(call, words);
  return result;
}

// The end of the handler sets the thread's mask and its signal stack as the context says.
void keep_changes(long number, ucontext_t& context) noexcept {
  if (number == SYS_rt_sigprocmask) {
    (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, nullptr, &context.uc_sigmask, preload::set_bytes);
    preload::leave_unblocked(context.uc_sigmask);
  } else if (number == SYS_sigaltstack) {
    (void)system_call(SYS_sigaltstack, nullptr, &context.uc_stack);
  }
}

enum class Trapping { untried, works, fails };
constinit std::atomic<Trapping> trapping{Trapping::untried};
// Relaxed: read by the thread that causes it.
constinit std::atomic<bool> has_stopped{false};

void on_stopped_call(int signal, siginfo_t* info, void* context) {
  if (info->si_code != by_filter || info->si_errno != filter_mark) return act_as_program(signal, info, context);
  has_stopped.store(true, std::memory_order_relaxed);
  const int before = errno;
  Registers registers(context);
  const Words words = registers.words();
  const Call* const call = find_call(info->si_syscall);
  registers.set_result(call != nullptr ? make(*call, words) : call_unfiltered(info->si_syscall, words));
  keep_changes(info->si_syscall, *static_cast<ucontext_t*>(context));
  errno = before;
}

// A process that was executed by one with far memory has inherited the filter. This call fails in either case.
bool has_inherited_filter() noexcept {
  constexpr std::uint64_t stops = 1ULL << (SIGSYS - 1);
  std::uint64_t before = 0;
  (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &stops, &before, sizeof before);
  (void)system_call(SYS_getcwd, zone_start, 0);
  (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  return has_stopped.load(std::memory_order_relaxed);
}

int start_trapping() noexcept {
  // Signals stay as they are: a call that waits is interrupted as usual. Threads with small stacks (Go's) have others
  // for signals.
  if (const int error = map_unfiltered_code()) return error;
  if (const int error = own_signal(SIGSYS, on_stopped_call, SA_NODEFER | SA_ONSTACK | SA_RESTART, Blocks::nothing))
    return error;
  return has_inherited_filter() ? 0 : filter_calls();
}

void say_why_local(int error) noexcept {
  const char* const why = ::strerrordesc_np(error);
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  const std::array parts{part("tonari far: a process stays with local memory, because the kernel refuses a filter of "
                              "its system calls (seccomp): "),
                         part(why != nullptr ? why : "an unknown error"), part("; --faults keeper needs none\n")};
  (void)system_call(SYS_writev, STDERR_FILENO, parts.data(), parts.size());
  program.channel->stays_local.store(1, std::memory_order_relaxed);
}

}  // namespace

bool trap_calls() noexcept {
  // Acquire: pairs with the release below.
  if (const Trapping seen = trapping.load(std::memory_order_acquire); seen != Trapping::untried)
    return seen == Trapping::works;
  const Guard guard(program.trapping);
  if (trapping.load(std::memory_order_relaxed) == Trapping::untried) {
    const int error = start_trapping();
    if (error != 0) say_why_local(error);
    trapping.store(error == 0 ? Trapping::works : Trapping::fails, std::memory_order_release);
  }
  return trapping.load(std::memory_order_relaxed) == Trapping::works;
}

}  // namespace tonari::far
