#pragma once

#include "base/file_descriptor.hpp"
#include "base/mapping.hpp"
#include "far/channel.hpp"
#include "far/remote_space.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tonari::far {

/// Returns a number that nobody can guess, and not 0. Throws SetupError.
std::uint64_t random_identity();

/// The keeper's connection to a program: the channel, and the socket whose other end only the program's agents hold.
///
/// Owns:    both. The program's Hello makes the space, which then lives as long as this object.
/// Threads: one.
class Program {
 public:
  struct Terms {
    std::uint64_t arena_bytes;
    std::uint64_t min_bytes;
    std::uint32_t buffers;
    std::uint32_t agents;
    std::uint64_t table_bytes;  // 0: the kernel reports faults
  };
  /// The memory that servers on this host lend: its place in this process, and its place in a file.
  struct Lent {
    std::span<std::byte> memory;
    int file;
    std::uint64_t offset;
  };
  /// Sends the program its channel, the lent memory and the memory for tables. Throws SetupError.
  Program(FileDescriptor socket, const Terms& terms, const Lent& lent);

  /// Readable when the program has sent its Hello, or when its address space has ended.
  [[nodiscard]] int descriptor() const noexcept { return socket_.number(); }
  /// Reads the next message, if any. Returns true if the program is there; space() then exists if its Hello has
  /// arrived. Returns false if the program has ended, or goes on without the keeper. Throws SetupError, with a remedy,
  /// if the keeper cannot serve the program.
  bool hear();
  /// Lets the program begin.
  void go() noexcept;
  /// Tells the program that its faults are served no longer; its agents then end what is left of it.
  void end() noexcept;

  [[nodiscard]] RemoteSpace* space() noexcept { return space_ ? &*space_ : nullptr; }
  [[nodiscard]] Channel& channel() noexcept { return *channel_; }
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }
  /// Returns true if the program could have no far memory, and has told the user why.
  [[nodiscard]] bool stays_local() const noexcept {
    return hello_.stays_local != 0 || channel_->stays_local.load(std::memory_order_relaxed) != 0;
  }

 private:
  FileDescriptor socket_;
  Mapping memory_;
  std::span<std::byte> lent_;
  Mapping tables_;
  Channel* channel_;
  Hello hello_{};
  std::optional<RemoteSpace> space_;
};

}  // namespace tonari::far
