#pragma once

#include "base/file_descriptor.hpp"
#include "pager/kernel.hpp"
#include "pager/page.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::pager {

/// Whose touches of absent pages are told: all, or only those that a program makes itself (then a system call that
/// meets an absent page fails with EFAULT).
enum class Reach : std::uint8_t { everything, user_mode };
/// What an administrator does, or a user asks for, to have everything.
inline constexpr const char* remedy_for_reach =
    "sysctl vm.unprivileged_userfaultfd=1, or give /dev/userfaultfd to a group by a udev rule "
    "(KERNEL==\"userfaultfd\", "
    "GROUP=\"...\", MODE=\"0660\"), or run with CAP_SYS_PTRACE";

/// A thread waits for a page.
struct Fault {
  Address address;
  std::uint32_t thread;  // as the kernel numbers threads
  bool is_write;
  bool is_protected = false;  // the page is there, and the write has to wait
};

/// Owns a userfaultfd: the kernel's word that a page is absent, and the means to place it.
///
/// Threads: any; faults are read by one.
/// Errors:  construction and watch() throw SetupError with cause and remedy. EAGAIN is retried here.
class Userfaultfd {
 public:
  /// What becomes of a thread that touches an absent page: it waits for us, or gets SIGBUS.
  enum class Touch : std::uint8_t { waits, signals };
  /// What is paged: private anonymous memory; or a file in memory (memfd), whose pages may be there and not be mapped.
  enum class Pages : std::uint8_t { anonymous, of_file };
  struct Options {
    Touch touch = Touch::waits;
    Reach widest = Reach::everything;  // no wider than that
    Pages pages = Pages::anonymous;
    bool newest = true;  // of a file: what Linux 6.4 and 6.6 brought is used where it is there
  };
  static constexpr std::size_t batch_max = 16;

  explicit Userfaultfd(const Options& options);
  Userfaultfd() : Userfaultfd(Options{}) {}
  /// Another process's, which has opened it with that reach, and done nothing else with it.
  Userfaultfd(FileDescriptor opened, Reach reach);

  [[nodiscard]] int number() const noexcept { return descriptor_.number(); }
  [[nodiscard]] Reach reach() const noexcept { return reach_; }

  /// From now on touches of pages that are absent in the range are told; of a file, also of those not mapped, and
  /// writes to those that are protected.
  void watch(Address start, std::size_t bytes);
  /// No longer; who waits there goes on, and finds zeros.
  void unwatch(Address start, std::size_t bytes) noexcept;

  /// The faults that are waiting to be read, up to a batch; none when there are none.
  std::span<const Fault> read() noexcept;

  /// Places pages with these bytes, where none are, and wakes who waits for them.
  Answer copy(Address to, const std::byte* from, std::size_t bytes) noexcept;
  /// Places pages of zeros, likewise.
  Answer zero(Address to, std::size_t bytes) noexcept;
  /// Takes pages away at `from` and places them at `to`, a huge page as one. Wakes who waits at `to`.
  Progress move(Address to, Address from, std::size_t bytes, Holes holes) noexcept;
  /// Whether writes have to wait. Where they no longer do, wakes who waits.
  enum class Writes : std::uint8_t { wait, go_on };
  // Of a file in memory:
  /// Linux 6.4: pages can be mapped and protected at once. Else writes to what resume() maps do not wait.
  [[nodiscard]] bool resumes_protected() const noexcept { return resumes_protected_; }
  /// Maps pages that the file has, where none are mapped, and wakes who waits for them.
  Answer resume(Address at, std::size_t bytes, Writes writes) noexcept;
  Answer protect(Address at, std::size_t bytes, Writes writes) noexcept;

  /// Whoever touches these pages gets SIGBUS, or EFAULT from a system call: their data are lost.
  Answer poison(Address at, std::size_t bytes) noexcept;
  /// Who waits in the range goes on, to fault again if its page is still absent.
  void wake(Address start, std::size_t bytes) noexcept;

 private:
  void introduce(Touch touch);
  Answer wake_where_there(Answer answer, Address at, std::size_t bytes) noexcept;
  Answer map_nothing(Address at, std::size_t bytes) noexcept;

  Pages pages_ = Pages::anonymous;
  FileDescriptor descriptor_;
  Reach reach_ = Reach::everything;
  bool resumes_protected_ = false;
  bool poisons_ = true;
  std::array<Fault, batch_max> batch_{};
};

}  // namespace tonari::pager
