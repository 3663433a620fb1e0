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

/// The keeper's tie to a program: the channel, and the socket whose other end only the program's agents have.
///
/// Owns:    both. The space is made by its Hello, and lives as long.
/// Threads: one.
class Program {
 public:
  struct Terms {
    std::uint64_t arena_bytes;
    std::uint64_t min_bytes;
    std::uint32_t buffers;
    std::uint32_t agents;
  };
  /// What servers on this host lend: where it is here, and where in a file.
  struct Lent {
    std::span<std::byte> memory;
    int file;
    std::uint64_t offset;
  };
  /// Sends the program its channel, and what is lent. Throws SetupError.
  Program(FileDescriptor socket, const Terms& terms, const Lent& lent);

  /// Readable when the program has said hello, or when its address space is gone.
  [[nodiscard]] int descriptor() const noexcept { return socket_.number(); }
  /// Reads what came: true once the space is there. False: the program has gone without a word. Throws SetupError when
  /// the program cannot be kept; says what to do.
  bool hear();
  /// The program may begin.
  void go() noexcept;
  /// Nobody answers it any more: what is alive of it ends.
  void end() noexcept;

  [[nodiscard]] RemoteSpace* space() noexcept { return space_ ? &*space_ : nullptr; }
  [[nodiscard]] Channel& channel() noexcept { return *channel_; }
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }

 private:
  FileDescriptor socket_;
  Mapping memory_;
  std::span<std::byte> lent_;
  Channel* channel_;
  Hello hello_{};
  std::optional<RemoteSpace> space_;
};

}  // namespace tonari::far
