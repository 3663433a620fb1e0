#include "pager/userfaultfd.hpp"

#include "base/error.hpp"
#include "pager/kernel.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
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

constexpr const char* remedy_to_open =
    "the kernel needs CONFIG_USERFAULTFD, and a container's filter must let the system call through";

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

void check_descriptors() {
  if (errno == EMFILE || errno == ENFILE) {
    throw_system_error("userfaultfd", "raise the limit of open files: see ulimit -n");
  }
}

FileDescriptor open_for_user_mode() {
  FileDescriptor opened{static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY))};
  if (!opened) check_descriptors();
  if (!opened) {
    throw_system_error("userfaultfd",
                       std::string{remedy_to_open} + "; for faults in system calls: " + remedy_for_reach);
  }
  return opened;
}

std::pair<FileDescriptor, Reach> open_within(Reach widest) {
  if (widest == Reach::everything) {
    if (FileDescriptor opened = open_widely()) return {std::move(opened), Reach::everything};
    check_descriptors();  // the user may well have the right
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

void check_kernel() {
  const std::uint64_t known = known_features();
  for (const auto& [feature, what] : {std::pair{kernel::feature_move, "UFFDIO_MOVE, which is in Linux 6.8 and later"},
                                      {kernel::feature_poison, "UFFDIO_POISON, which is in Linux 6.6 and later"}}) {
    if ((known & feature) == 0) throw SetupError("paging needs " + std::string{what} + ": use a newer kernel");
  }
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(page_bytes)) {
    throw SetupError("paging needs pages of 4096 bytes, and here they have " + std::to_string(::sysconf(_SC_PAGESIZE)) +
                     ": use a kernel made for 4 KiB pages");
  }
}

struct System {
  int descriptor;
  template <class Request>
  [[nodiscard]] int control(unsigned long code, Request& request) const noexcept {
    return ::ioctl(descriptor, code, &request) == 0 ? 0 : errno;
  }
  static void yield() noexcept { ::sched_yield(); }
};

}  // namespace

Userfaultfd::Userfaultfd(const Options& options) {
  check_kernel();
  auto [descriptor, reach] = open_within(options.widest);
  descriptor_ = std::move(descriptor);
  reach_ = reach;
  introduce(options.touch);
}

Userfaultfd::Userfaultfd(FileDescriptor opened, Reach reach) : descriptor_(std::move(opened)), reach_(reach) {
  check_kernel();
  introduce(Touch::waits);
}

void Userfaultfd::introduce(Touch touch) {
  uffdio_api api{
      .api = UFFD_API, .features = kernel::feature_move | kernel::feature_poison | UFFD_FEATURE_THREAD_ID, .ioctls = 0};
  if (touch == Touch::signals) api.features |= UFFD_FEATURE_SIGBUS;
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
  (void)System{number()}.control(UFFDIO_UNREGISTER, range);  // refused: it is unmapped, and nobody waits
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
    const auto [more, answer] = kernel::go_on(System{number()}, UFFDIO_COPY, bytes - done, make,
                                              [](const uffdio_copy& each) { return each.copy; });
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
  const Answer answer = kernel::zero(System{number()}, to, bytes);
  if (answer == Answer::there) wake(to, bytes);
  return answer;
}

Progress Userfaultfd::move(Address to, Address from, std::size_t bytes, Holes holes) noexcept {
  return kernel::move(System{number()}, to, from, bytes, holes);
}

Answer Userfaultfd::poison(Address at, std::size_t bytes) noexcept {
  kernel::PoisonRequest request{.range = {at, bytes}, .mode = 0, .poisoned = 0};
  const Answer answer = kernel::answer_to(System{number()}.control(kernel::request_poison, request));
  if (answer == Answer::there) wake(at, bytes);
  return answer;
}

void Userfaultfd::wake(Address start, std::size_t bytes) noexcept {
  uffdio_range range{start, bytes};
  (void)System{number()}.control(UFFDIO_WAKE, range);  // refused: it is unmapped, and nobody waits
}

}  // namespace tonari::pager
