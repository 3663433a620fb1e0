#pragma once

#include "base/file_descriptor.hpp"
#include "pager/kernel.hpp"
#include "pager/page.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// Which touches of absent pages are reported: all, or only the program's own (a system call that meets an absent page
/// then fails with EFAULT).
enum class Reach : std::uint8_t { everything, user_mode };
/// How an administrator or user can get Reach::everything.
inline constexpr const char* remedy_for_reach =
    "sysctl vm.unprivileged_userfaultfd=1, or give /dev/userfaultfd to a group by a udev rule "
    "(KERNEL==\"userfaultfd\", "
    "GROUP=\"...\", MODE=\"0660\"), or run with CAP_SYS_PTRACE";

/// A thread waits for a page.
struct Fault {
  Address address;
  std::uint32_t thread;  // the kernel's thread id
  bool is_write;
  bool is_protected = false;  // the page is present, but the write has to wait
  bool holds_block = false;   // the thread has held the page's block for the pager, which lets go of it
};

/// Owns a userfaultfd: the kernel reports absent pages through it, and places pages by it.
///
/// Threads: any; only one thread reads faults.
/// Errors:  construction and watch() throw SetupError with cause and remedy. EAGAIN is retried inside.
class Userfaultfd {
 public:
  /// Whether a thread that touches an absent page waits for the pager, or gets SIGBUS.
  enum class Touch : std::uint8_t { waits, signals };
  /// Kind of the paged memory: private anonymous; or a file in memory (memfd), which may have pages that are not
  /// mapped.
  enum class Pages : std::uint8_t { anonymous, of_file };
  struct Options {
    Touch touch = Touch::waits;
    Reach widest = Reach::everything;  // never a wider reach than that
    Pages pages = Pages::anonymous;
    bool newest = true;     // for files: use the features of Linux 6.4 and 6.6 if the kernel has them
    bool protects = false;  // for anonymous memory: pages can be protected; pages of files always can
  };
  static constexpr std::size_t batch_max = 16;

  explicit Userfaultfd(const Options& options);
  Userfaultfd() : Userfaultfd(Options{}) {}
  /// Takes over a userfaultfd that another process has opened with that reach, and has not used yet. If touches signal,
  /// pages can be protected, too, and a write to a protected page signals.
  Userfaultfd(FileDescriptor opened, Reach reach, Touch touch = Touch::waits);

  [[nodiscard]] int number() const noexcept { return descriptor_.number(); }
  [[nodiscard]] Reach reach() const noexcept { return reach_; }
  /// Returns true if writes to pages can be made to wait: see protect().
  [[nodiscard]] bool protects() const noexcept { return protects_; }

  /// Reports touches of absent pages in the range from now on; for a file, also touches of pages that are not mapped,
  /// and writes to protected pages.
  void watch(Address start, std::size_t bytes);
  /// Stops watching; threads that wait there go on, and find zeros.
  void unwatch(Address start, std::size_t bytes) noexcept;

  /// Returns the faults that can be read now, up to a batch; empty if there are none.
  std::span<const Fault> read() noexcept;

  /// Places pages with these bytes where pages are absent, and wakes threads that wait for them.
  Answer copy(Address to, const std::byte* from, std::size_t bytes) noexcept;
  /// Places pages of zeros in the same way.
  Answer zero(Address to, std::size_t bytes) noexcept;
  /// Removes pages at `from` and places them at `to`, a huge page as one. Wakes threads that wait at `to`.
  Progress move(Address to, Address from, std::size_t bytes) noexcept;
  /// Whether writes have to wait. Writes::go_on wakes threads that wait.
  enum class Writes : std::uint8_t { wait, go_on };
  // For a file in memory only:
  /// Returns true on Linux 6.4 or later, where pages can be mapped and protected in one step. Otherwise writes to pages
  /// that resume() maps do not wait.
  [[nodiscard]] bool resumes_protected() const noexcept { return resumes_protected_; }
  /// Maps pages that the file has at unmapped addresses, and wakes threads that wait for them.
  Answer resume(Address at, std::size_t bytes, Writes writes) noexcept;

  /// Only if protects().
  Answer protect(Address at, std::size_t bytes, Writes writes) noexcept;

  /// From now on a touch of these pages, whose data are lost, raises SIGBUS, or EFAULT in a system call.
  Answer poison(Address at, std::size_t bytes) noexcept;
  /// Wakes threads that wait in the range; they fault again if their page is still absent.
  void wake(Address start, std::size_t bytes) noexcept;

 private:
  void introduce();
  Answer wake_where_there(Answer answer, Address at, std::size_t bytes) noexcept;
  Answer map_nothing(Address at, std::size_t bytes) noexcept;

  Pages pages_ = Pages::anonymous;
  Touch touch_ = Touch::waits;
  bool protects_ = false;
  FileDescriptor descriptor_;
  Reach reach_ = Reach::everything;
  bool resumes_protected_ = false;
  bool poisons_ = true;
  std::array<Fault, batch_max> batch_{};
};

}  // namespace tonari::pager
