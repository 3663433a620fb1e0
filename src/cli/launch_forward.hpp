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

/// Carries the output of all ranks to ours, line by line, and our own messages among it.
///
/// Owns:    the ranks' pipes, and what has been read and not yet written.
/// Threads: one. Nothing blocks: wait until descriptor() is readable or due() has come, then call step().
/// Costs:   at most Outlet::waiting_bytes_max and a little; when a reader is slow the ranks have to wait.
class Forwarder {
 public:
  /// `tagged`: each line begins with "[rank] ".
  Forwarder(int ranks, bool tagged);

  void add(int rank, FileDescriptor output, FileDescriptor error);
  /// A line of our own on standard error.
  void say(std::string_view text);

  [[nodiscard]] int descriptor() const noexcept { return events_.number(); }
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> due() const noexcept { return show_at_; }
  void step();
  /// Passes on all that a rank has written, and closes its pipes. Later output of its children is lost.
  void finish(int rank);
  /// True when all that was passed on is written, or nobody reads it.
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
  bool at_terminal_;  // someone types at rank 0
  FileDescriptor events_;
  Outlet output_;
  std::optional<Outlet> own_error_;  // unless both lead to the same place
  Outlet* error_;
  std::vector<Stream> streams_;                                   // of rank r: output 2r, error 2r + 1
  std::vector<int> paused_;                                       // not watched, since their outlet is full
  std::array<bool, 2> waits_for_room_{};                          // output, error: watched by events_
  std::optional<std::chrono::steady_clock::time_point> show_at_;  // when to show rank 0's unfinished lines
};

}  // namespace tonari::cli
