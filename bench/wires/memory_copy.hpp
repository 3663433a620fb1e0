#pragma once

#include "harness/one_sided_wire.hpp"
#include "wires/ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace tonari::bench {

/// The lower bound of every copy: two processes with only memcpy between memory that both have mapped, or, for the
/// program's own memory, process_vm_writev and process_vm_readv. No checks, no translation, no sequence numbers.
class BareWire : public RingWire {
 public:
  /// Which copies are measured; determines the name of the system.
  enum class Copies : bool { memcpy, process_vm };

  class Window {
   public:
    /// The other rank's part is mapped at `mapped`, or is in process `other` at address `there`.
    Window(std::span<std::byte> local, std::byte* mapped) noexcept : local_(local), mapped_(mapped) {}
    Window(std::span<std::byte> local, pid_t other, std::uint64_t there) noexcept
        : local_(local), other_(other), there_(there) {}
    Window(Window&&) = delete;
    ~Window() {
      if (mapped_ == nullptr) return;
      ::munmap(local_.data(), local_.size());
      ::munmap(mapped_, local_.size());
    }

    std::span<std::byte> local() const noexcept { return local_; }
    void push(std::span<const std::byte> from, int, std::size_t offset) {
      if (mapped_ != nullptr) {
        std::memcpy(mapped_ + offset, from.data(), from.size());
      } else {
        const iovec here{const_cast<std::byte*>(from.data()), from.size()};
        const iovec there = at(offset, from.size());
        check(::process_vm_writev(other_, &here, 1, &there, 1, 0), from.size());
      }
    }
    void pull(std::span<std::byte> to, int, std::size_t offset) {
      if (mapped_ != nullptr) {
        std::memcpy(to.data(), mapped_ + offset, to.size());
        asm volatile("" : : "r"(to.data()) : "memory");  // the compiler must not drop the copy
      } else {
        const iovec here{to.data(), to.size()};
        const iovec there = at(offset, to.size());
        check(::process_vm_readv(other_, &here, 1, &there, 1, 0), to.size());
      }
    }
    void flush(int) const noexcept { std::atomic_thread_fence(std::memory_order_release); }
    void finish_pulls(int) const noexcept {}

   private:
    [[nodiscard]] iovec at(std::size_t offset, std::size_t bytes) const noexcept {
      return {reinterpret_cast<void*>(there_ + offset), bytes};
    }
    static void check(ssize_t copied, std::size_t bytes) {
      if (copied != static_cast<ssize_t>(bytes)) throw_system_error("process_vm");
    }

    std::span<std::byte> local_;
    std::byte* mapped_ = nullptr;
    pid_t other_ = 0;
    std::uint64_t there_ = 0;
  };

  BareWire(Copies copies, bool bind) : RingWire(bind), copies_(copies) {}

  std::string system() const { return copies_ == Copies::memcpy ? "memcpy" : "process-vm"; }

  Window allocate(std::size_t bytes) {
    const int mine = ::memfd_create("tonari-bench", MFD_CLOEXEC);
    if (mine < 0 || ::ftruncate(mine, static_cast<off_t>(bytes)) != 0) throw_system_error("memory to share");
    const Place theirs = exchange({::getpid(), static_cast<std::uint64_t>(mine)});
    const auto path = "/proc/" + std::to_string(theirs.process) + "/fd/" + std::to_string(theirs.what);
    const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (other < 0) throw_system_error(path);
    auto* const local = map(mine, bytes);
    auto* const mapped = map(other, bytes);
    exchange({});  // both processes have opened both files
    ::close(other);
    ::close(mine);
    return {{local, bytes}, mapped};
  }
  Window expose(std::span<std::byte> memory) {
    const Place theirs = exchange({::getpid(), reinterpret_cast<std::uint64_t>(memory.data())});
    return {memory, theirs.process, theirs.what};
  }

 private:
  /// A value that one rank sends to the other, in this layout.
  struct Place {
    pid_t process = 0;
    std::uint64_t what = 0;  // a descriptor, or an address
  };

  Place exchange(const Place& mine) {
    Place theirs;
    send(bytes_of(mine), 0, 0);
    receive(bytes_of(theirs), 0, 0);
    return theirs;
  }
  static std::byte* map(int file, std::size_t bytes) {
    auto* const start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (start == MAP_FAILED) throw_system_error("mmap of shared memory");
    return static_cast<std::byte*>(start);
  }
  [[noreturn]] static void throw_system_error(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }

  Copies copies_;
};

static_assert(OneSidedWire<BareWire>);

}  // namespace tonari::bench
