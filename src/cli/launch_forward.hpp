#pragma once

#include "base/file_descriptor.hpp"
#include "cli/launch_output.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

/// Forwards the output of all ranks to ours, line by line, with our own messages.
///
/// Owns:    the ranks' pipes, and the text that has been read and not yet written.
/// Threads: one. Nothing blocks: wait until descriptor() is readable or due() has passed, then call step().
/// Costs:   little more memory than Outlet::waiting_bytes_max; if a reader is slow, the ranks have to wait.
class Forwarder {
 public:
  /// `tagged`: each line begins with "[rank] ".
  Forwarder(int ranks, bool tagged);

  void add(int rank, FileDescriptor output, FileDescriptor error);
  /// Writes a line of our own to standard error.
  void say(std::string_view text);

  [[nodiscard]] int descriptor() const noexcept { return events_.number(); }
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> due() const noexcept { return show_at_; }
  void step();
  /// Forwards all that a rank has written, and closes its pipes. Later output of its children is lost.
  void finish(int rank);
  /// True if all text is written, or cannot be written any more.
  [[nodiscard]] bool is_flushed() const noexcept;
  /// The error that ended writing to standard output; 0 while there is none. Ranks that write to it then get SIGPIPE.
  [[nodiscard]] int output_error() const noexcept { return output_.error(); }

 private:
  static constexpr int output_index = -1;
  static constexpr int error_index = -2;
  static constexpr int own_writer = 1 << 30;

  [[nodiscard]] Stream& stream(int index) noexcept { return streams_[static_cast<std::size_t>(index)]; }
  void watch(const Stream& watched, int index);
  void read(int index);
  void show_unfinished();
  void flush(Outlet& outlet, int index);
  void flush_all();

  bool tagged_;
  bool at_terminal_;  // rank 0 reads from a terminal
  FileDescriptor events_;
  Outlet output_;
  std::optional<Outlet> own_error_;  // empty if standard output leads to the same place
  Outlet* error_;
  std::vector<Stream> streams_;                                   // of rank r: output 2r, error 2r + 1
  std::vector<int> paused_;                                       // not watched, because their outlet is full
  std::array<bool, 2> waits_for_room_{};                          // output, error: watched by events_
  std::optional<std::chrono::steady_clock::time_point> show_at_;  // when to show rank 0's unfinished lines
};

}  // namespace tonari::cli
