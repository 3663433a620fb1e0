#include "pager/userfaultfd.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string>
#include <utility>

namespace tonari::pager {

namespace {

// What the headers of Linux 6.1 do not have yet; ours have other names, should newer ones be used.
constexpr std::uint64_t feature_poison = 1 << 14;  // Linux 6.6
constexpr std::uint64_t feature_move = 1 << 16;    // Linux 6.8
constexpr std::uint64_t move_allows_holes = 1 << 1;

struct MoveRequest {
  std::uint64_t to;
  std::uint64_t from;
  std::uint64_t bytes;
  std::uint64_t mode;
  std::int64_t moved;
};
struct PoisonRequest {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t poisoned;
};
static_assert(sizeof(MoveRequest) == 40 && sizeof(PoisonRequest) == 32);
constexpr unsigned long request_move = _IOWR(UFFDIO, 0x05, MoveRequest);
constexpr unsigned long request_poison = _IOWR(UFFDIO, 0x08, PoisonRequest);

constexpr const char* remedy_to_open =
    "the kernel needs CONFIG_USERFAULTFD, and a container's filter must let the system call through";
constexpr const char* remedy_for_reach =
    "for faults in system calls run as root or with CAP_SYS_PTRACE, set vm.unprivileged_userfaultfd=1, or give "
    "/dev/userfaultfd to a group by a udev rule (KERNEL==\"userfaultfd\", GROUP=\"...\", MODE=\"0660\")";

Answer answer_to(int error) noexcept {
  switch (error) {
    case 0: return Answer::ok;
    case EEXIST: return Answer::there;
    case ENOENT:
    case ESRCH: return Answer::gone;
    case EBUSY: return Answer::busy;
    case ENOMEM: return Answer::no_memory;
    default: return Answer::refused;
  }
}

// With a device the kernel asks for the file's rights, without one for the process's.
FileDescriptor open_widely() noexcept {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  const FileDescriptor device{::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC)};
  if (device) {
    FileDescriptor opened{::ioctl(device.number(), USERFAULTFD_IOC_NEW, flags)};
    if (opened) return opened;
  }
  return FileDescriptor{static_cast<int>(::syscall(SYS_userfaultfd, flags))};
}

FileDescriptor open_for_user_mode() {
  FileDescriptor opened{static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))};
  if (!opened) throw_system_error("userfaultfd", std::string{remedy_to_open} + "; " + remedy_for_reach);
  return opened;
}

std::pair<FileDescriptor, Reach> open_within(Reach widest) {
  if (widest == Reach::everything) {
    if (FileDescriptor opened = open_widely()) return {std::move(opened), Reach::everything};
  }
  return {open_for_user_mode(), Reach::user_mode};
}

// The kernel refuses what it does not know, and answers once a descriptor: so it is asked on another.
std::uint64_t known_features() {
  const FileDescriptor probe = open_for_user_mode();
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (::ioctl(probe.number(), UFFDIO_API, &api) != 0) throw_system_error("UFFDIO_API", remedy_to_open);
  return api.features;
}

// EAGAIN: the mappings are being changed, or a page is locked for a moment. What never ends is somebody's bug.
constexpr int tries_max = 100'000;

template <class Request>
int control(int descriptor, unsigned long code, Request& request) noexcept {
  return ::ioctl(descriptor, code, &request) == 0 ? 0 : errno;
}

/// Makes requests, `make(done)` each, until all `bytes` are done or one answers anything but EAGAIN. `progress` reads
/// from a request how far it came.
template <class Make, class Progress>
Userfaultfd::Progress go_on(int descriptor, unsigned long code, std::size_t bytes, Make make,
                            Progress progress) noexcept {
  std::size_t done = 0;
  for (int tries = 0; done < bytes && tries < tries_max;) {
    auto request = make(done);
    const int error = control(descriptor, code, request);
    if (error == 0) return {bytes, Answer::ok};
    if (error != EAGAIN) return {done, answer_to(error)};
    const std::int64_t came = progress(request);
    if (came > 0) {
      done += static_cast<std::size_t>(came);
      tries = 0;
    } else if (++tries % 16 == 0) {
      ::sched_yield();
    }
  }
  return {done, done == bytes ? Answer::ok : Answer::busy};
}

}  // namespace

Userfaultfd::Userfaultfd(const Options& options) {
  const std::uint64_t known = known_features();
  for (const auto& [feature, what] : {std::pair{feature_move, "UFFDIO_MOVE, which is in Linux 6.8 and later"},
                                      {feature_poison, "UFFDIO_POISON, which is in Linux 6.6 and later"}}) {
    if ((known & feature) == 0) throw SetupError("paging needs " + std::string{what} + ": use a newer kernel");
  }
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(page_bytes)) {
    throw SetupError("paging needs pages of 4096 bytes, and here they have " + std::to_string(::sysconf(_SC_PAGESIZE)) +
                     ": use a kernel made for 4 KiB pages");
  }

  auto [descriptor, reach] = open_within(options.widest);
  descriptor_ = std::move(descriptor);
  reach_ = reach;
  uffdio_api api{.api = UFFD_API, .features = feature_move | feature_poison | UFFD_FEATURE_THREAD_ID, .ioctls = 0};
  if (options.touch == Touch::signals) api.features |= UFFD_FEATURE_SIGBUS;
  if (::ioctl(number(), UFFDIO_API, &api) != 0) throw_system_error("UFFDIO_API", remedy_to_open);
}

void Userfaultfd::watch(Address start, std::size_t bytes) {
  uffdio_register request{.range = {start, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
  if (::ioctl(number(), UFFDIO_REGISTER, &request) != 0) {
    throw_system_error("UFFDIO_REGISTER of " + std::to_string(bytes) + " bytes",
                       "the range must be whole pages of private anonymous memory that nobody else watches");
  }
}

void Userfaultfd::unwatch(Address start, std::size_t bytes) noexcept {
  uffdio_range range{start, bytes};
  (void)control(number(), UFFDIO_UNREGISTER, range);  // refused: it is unmapped, and nobody waits
}

std::span<const Fault> Userfaultfd::read() noexcept {
  std::array<uffd_msg, batch_max> messages;
  const ssize_t got = ::read(number(), messages.data(), sizeof messages);
  if (got <= 0) return {};
  std::size_t faults = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(uffd_msg); ++i) {
    const uffd_msg& message = messages[i];
    if (message.event != UFFD_EVENT_PAGEFAULT) continue;
    batch_[faults++] = {message.arg.pagefault.address / page_bytes * page_bytes, message.arg.pagefault.feat.ptid,
                        (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0};
  }
  return {batch_.data(), faults};
}

Answer Userfaultfd::copy(Address to, const std::byte* from, std::size_t bytes) noexcept {
  bool met = false;
  for (std::size_t done = 0; done < bytes; done += page_bytes) {
    const auto make = [&](std::size_t more) {
      return uffdio_copy{.dst = to + done + more,
                         .src = reinterpret_cast<std::uint64_t>(from) + done + more,
                         .len = bytes - done - more,
                         .mode = 0,
                         .copy = 0};
    };
    const auto [more, answer] =
        go_on(number(), UFFDIO_COPY, bytes - done, make, [](const uffdio_copy& each) { return each.copy; });
    done += more;
    if (answer == Answer::ok) break;
    if (answer != Answer::there) return answer;
    met = true;  // the page at `done`: step over it
  }
  if (!met) return Answer::ok;
  wake(to, bytes);  // who was faster may have come before somebody began to wait
  return Answer::there;
}

Answer Userfaultfd::zero(Address to, std::size_t bytes) noexcept {
  bool met = false;
  for (std::size_t done = 0; done < bytes; done += page_bytes) {
    const auto make = [&](std::size_t more) {
      return uffdio_zeropage{.range = {to + done + more, bytes - done - more}, .mode = 0, .zeropage = 0};
    };
    const auto [more, answer] =
        go_on(number(), UFFDIO_ZEROPAGE, bytes - done, make, [](const uffdio_zeropage& each) { return each.zeropage; });
    done += more;
    if (answer == Answer::ok) break;
    if (answer != Answer::there) return answer;
    met = true;
  }
  if (!met) return Answer::ok;
  wake(to, bytes);
  return Answer::there;
}

Userfaultfd::Progress Userfaultfd::move(Address to, Address from, std::size_t bytes, Holes holes) noexcept {
  const std::uint64_t mode = holes == Holes::allowed ? move_allows_holes : 0;
  const auto make = [&](std::size_t done) { return MoveRequest{to + done, from + done, bytes - done, mode, 0}; };
  return go_on(number(), request_move, bytes, make, [](const MoveRequest& each) { return each.moved; });
}

Answer Userfaultfd::poison(Address at, std::size_t bytes) noexcept {
  PoisonRequest request{.range = {at, bytes}, .mode = 0, .poisoned = 0};
  const Answer answer = answer_to(control(number(), request_poison, request));
  if (answer == Answer::there) wake(at, bytes);
  return answer;
}

void Userfaultfd::wake(Address start, std::size_t bytes) noexcept {
  uffdio_range range{start, bytes};
  (void)control(number(), UFFDIO_WAKE, range);  // refused: it is unmapped, and nobody waits
}

}  // namespace tonari::pager
