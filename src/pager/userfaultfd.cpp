#include "pager/userfaultfd.hpp"

#include "base/error.hpp"
#include "pager/kernel.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

// With the device, the kernel checks the file's permissions; without it, the process's rights.
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
    throw_system_error("userfaultfd", "raise the limit of open files with ulimit -n");
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
    check_descriptors();  // without descriptors, narrower reach would not help
  }
  return {open_for_user_mode(), Reach::user_mode};
}

// The kernel refuses unknown features, and can be asked only once per descriptor. So a second descriptor is used to
// ask.
std::uint64_t known_features() {
  const FileDescriptor probe = open_for_user_mode();
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (::ioctl(probe.number(), UFFDIO_API, &api) != 0) throw_system_error("UFFDIO_API", remedy_to_open);
  return api.features;
}

struct Feature {
  std::uint64_t bit;
  const char* what;
};
constexpr Feature poison{kernel::feature_poison, "UFFDIO_POISON, which is in Linux 6.6 and later"};
constexpr std::array needed_anonymous{Feature{kernel::feature_move, "UFFDIO_MOVE, which is in Linux 6.8 and later"},
                                      poison};
constexpr std::array needed_of_file{
    Feature{UFFD_FEATURE_MINOR_SHMEM, "UFFD_FEATURE_MINOR_SHMEM, which is in Linux 5.14 and later"},
    Feature{UFFD_FEATURE_WP_HUGETLBFS_SHMEM, "UFFD_FEATURE_WP_HUGETLBFS_SHMEM, which is in Linux 5.19 and later"}};

std::span<const Feature> needed_for(Userfaultfd::Pages pages) noexcept {
  if (pages == Userfaultfd::Pages::of_file) return needed_of_file;
  return needed_anonymous;
}

/// Returns the kernel's features if they suffice.
std::uint64_t check_kernel(Userfaultfd::Pages pages) {
  const std::uint64_t known = known_features();
  for (const auto& [feature, what] : needed_for(pages)) {
    if ((known & feature) == 0) throw SetupError("paging needs " + std::string{what} + ": use a newer kernel");
  }
  if (::sysconf(_SC_PAGESIZE) != static_cast<long>(page_bytes)) {
    throw SetupError("paging needs pages of 4096 bytes, but this kernel's pages have " +
                     std::to_string(::sysconf(_SC_PAGESIZE)) + " bytes: use a kernel that is built for 4 KiB pages");
  }
  return known;
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

Userfaultfd::Userfaultfd(const Options& options)
    : pages_(options.pages), touch_(options.touch), protects_(options.protects || options.pages == Pages::of_file) {
  const std::uint64_t known = check_kernel(pages_);
  if (pages_ == Pages::of_file) {
    resumes_protected_ = options.newest && (known & kernel::feature_protect_absent) != 0;
    poisons_ = options.newest && (known & kernel::feature_poison) != 0;
  }
  auto [descriptor, reach] = open_within(options.widest);
  descriptor_ = std::move(descriptor);
  reach_ = reach;
  introduce();
}

Userfaultfd::Userfaultfd(FileDescriptor opened, Reach reach, Touch touch)
    : touch_(touch), protects_(touch == Touch::signals), descriptor_(std::move(opened)), reach_(reach) {
  (void)check_kernel(pages_);
  introduce();
}

void Userfaultfd::introduce() {
  uffdio_api api{.api = UFFD_API, .features = UFFD_FEATURE_THREAD_ID, .ioctls = 0};
  for (const Feature& feature : needed_for(pages_)) api.features |= feature.bit;
  if (resumes_protected_) api.features |= kernel::feature_protect_absent;
  if (poisons_) api.features |= kernel::feature_poison;
  if (touch_ == Touch::signals) api.features |= UFFD_FEATURE_SIGBUS;
  if (protects_) api.features |= UFFD_FEATURE_PAGEFAULT_FLAG_WP;
  if (::ioctl(number(), UFFDIO_API, &api) != 0) throw_system_error("UFFDIO_API", remedy_to_open);
}

void Userfaultfd::watch(Address start, std::size_t bytes) {
  std::uint64_t mode = UFFDIO_REGISTER_MODE_MISSING;
  if (pages_ == Pages::of_file) mode |= UFFDIO_REGISTER_MODE_MINOR;
  if (protects_) mode |= UFFDIO_REGISTER_MODE_WP;
  uffdio_register request{.range = {start, bytes}, .mode = mode, .ioctls = 0};
  if (::ioctl(number(), UFFDIO_REGISTER, &request) != 0) {
    throw_system_error(
        "UFFDIO_REGISTER of " + std::to_string(bytes) + " bytes",
        "the range must be whole pages of the right kind of memory, and watched by no other userfaultfd");
  }
}

void Userfaultfd::unwatch(Address start, std::size_t bytes) noexcept {
  uffdio_range range{start, bytes};
  (void)System{number()}.control(UFFDIO_UNREGISTER, range);  // fails if it is unmapped already
  // UFFDIO_UNREGISTER wakes the waiting threads before it locks out page faults. A fault that comes between the two
  // begins to wait after that wake, and nothing else would end its wait.
  wake(start, bytes);
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
                        (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WRITE) != 0,
                        (message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP) != 0};
  }
  return {batch_.data(), faults};
}

// If a page was there already, its placer's wake may have come before a later thread began to wait.
Answer Userfaultfd::wake_where_there(Answer answer, Address at, std::size_t bytes) noexcept {
  if (answer == Answer::there) wake(at, bytes);
  return answer;
}

Answer Userfaultfd::copy(Address to, const std::byte* from, std::size_t bytes) noexcept {
  const auto requests = kernel::copy_requests(to, from, bytes, 0);
  return wake_where_there(kernel::place(System{number()}, UFFDIO_COPY, bytes, requests, kernel::copied), to, bytes);
}

Answer Userfaultfd::zero(Address to, std::size_t bytes) noexcept {
  return wake_where_there(kernel::zero(System{number()}, to, bytes), to, bytes);
}

Progress Userfaultfd::move(Address to, Address from, std::size_t bytes) noexcept {
  return kernel::move(System{number()}, to, from, bytes);
}

Answer Userfaultfd::resume(Address at, std::size_t bytes, Writes writes) noexcept {
  const std::uint64_t mode = writes == Writes::wait && resumes_protected_ ? kernel::resume_protected : 0;
  const auto make = [&](std::size_t done) {
    return uffdio_continue{.range = {at + done, bytes - done}, .mode = mode, .mapped = 0};
  };
  const auto progress = [](const uffdio_continue& each) { return each.mapped; };
  return wake_where_there(kernel::place(System{number()}, UFFDIO_CONTINUE, bytes, make, progress), at, bytes);
}

Answer Userfaultfd::protect(Address at, std::size_t bytes, Writes writes) noexcept {
  return kernel::protect(System{number()}, at, bytes, writes == Writes::wait);
}

// Maps a file without pages: touching it raises SIGBUS, too.
Answer Userfaultfd::map_nothing(Address at, std::size_t bytes) noexcept {
  const FileDescriptor empty{::memfd_create("tonari-lost", MFD_CLOEXEC)};
  constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  void* const got = ::mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE, flags, empty.number(), 0);
  wake(at, bytes);
  return got == MAP_FAILED ? Answer::refused : Answer::ok;
}

Answer Userfaultfd::poison(Address at, std::size_t bytes) noexcept {
  if (!poisons_) return map_nothing(at, bytes);
  const auto make = [&](std::size_t done) {
    return kernel::PoisonRequest{.range = {at + done, bytes - done}, .mode = 0, .poisoned = 0};
  };
  const auto progress = [](const kernel::PoisonRequest& each) { return each.poisoned; };
  const Answer answer = kernel::place(System{number()}, kernel::request_poison, bytes, make, progress);
  wake(at, bytes);
  return answer;
}

void Userfaultfd::wake(Address start, std::size_t bytes) noexcept { kernel::wake(System{number()}, start, bytes); }

}  // namespace tonari::pager
