#pragma once

#include "base/file_descriptor.hpp"
#include "base/mapping.hpp"
#include "far/channel.hpp"
#include "far/remote_space.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace tonari::far {

/// The keeper's tie to a program: the channel, and the socket whose other end only the program's agent has.
///
/// Owns:    both. The space is made by its Hello, and lives as long.
/// Threads: one.
class Program {
 public:
  struct Terms {
    std::uint64_t arena_bytes;
    std::uint64_t min_bytes;
    std::uint32_t buffers;
  };
  /// Sends the program its channel. Throws SetupError.
  Program(FileDescriptor socket, pid_t process, const Terms& terms);

  /// Readable when the program has said hello, or when its address space is gone.
  [[nodiscard]] int descriptor() const noexcept { return socket_.number(); }
  /// Reads what came: true once the space is there. False: the program has gone without a word. Throws SetupError when
  /// the program cannot be kept; says what to do.
  bool hear();
  /// The program may begin.
  void go() noexcept;

  [[nodiscard]] RemoteSpace* space() noexcept { return space_ ? &*space_ : nullptr; }
  [[nodiscard]] Channel& channel() noexcept { return *channel_; }
  [[nodiscard]] const Hello& hello() const noexcept { return hello_; }

 private:
  FileDescriptor socket_;
  pid_t process_;
  Mapping memory_;
  Channel* channel_;
  Hello hello_{};
  std::optional<RemoteSpace> space_;
};

}  // namespace tonari::far
