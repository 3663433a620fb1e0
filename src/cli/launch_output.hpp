#pragma once

#include "base/file_descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::cli {

/// Writes lines of many writers to standard output or standard error of this process. Never blocks.
///
/// Lines of different writers do not mix: if another one writes while a line is unfinished, the line is ended first.
class Outlet {
 public:
  static constexpr std::size_t waiting_bytes_max = 1 << 20;

  explicit Outlet(int number);

  /// Appends text of a writer, which is identified by a number from 0.
  void write(int writer, std::string_view text);
  /// True if this writer wrote last and its line is unfinished.
  [[nodiscard]] bool has_open_line(int writer) const noexcept { return open_line_ == writer; }

  /// Writes as much as is possible without blocking.
  void flush() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return written_ == waiting_.size(); }
  /// True if writers should pause until some text is written.
  [[nodiscard]] bool is_full() const noexcept { return waiting_.size() - written_ > waiting_bytes_max; }
  /// The error that ended writing, such as EPIPE or ENOSPC; 0 while there is none. Later text is dropped.
  [[nodiscard]] int error() const noexcept { return write_error_; }
  [[nodiscard]] bool is_broken() const noexcept { return write_error_ != 0; }
  [[nodiscard]] int number() const noexcept { return number_; }
  /// True if both lead to the same file, pipe or terminal, where parts of lines would mix.
  [[nodiscard]] bool is_same_place(const Outlet& other) const noexcept;

 private:
  static constexpr int nobody = -1;

  int number_;
  std::size_t piece_bytes_max_;  // bytes that can be written without blocking when poll() reports room
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  int open_line_ = nobody;
  int write_error_ = 0;
};

/// One rank's standard output or error, cut into lines on the way to an outlet.
class Stream {
 public:
  static constexpr std::size_t line_bytes_max = 64 * 1024;  // longer lines are forwarded in pieces

  Stream() = default;
  /// `prefix` begins each line. `writer` is the number for the outlet.
  Stream(FileDescriptor pipe, Outlet& outlet, int writer, std::string prefix);

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(pipe_); }
  [[nodiscard]] const FileDescriptor& pipe() const noexcept { return pipe_; }
  [[nodiscard]] const Outlet& outlet() const noexcept { return *outlet_; }
  /// Forwards the text that can be read, as far as the outlet has room. Closes itself at the end of the pipe.
  void read_on();
  /// Forwards an unfinished line, too, so that a prompt appears at a terminal.
  void show_unfinished();
  [[nodiscard]] bool has_unfinished() const noexcept { return !line_.empty(); }
  /// Forwards the rest. Text that the writer's children write later is lost.
  void close();

 private:
  void pass_lines();
  void pass(std::string_view piece);

  FileDescriptor pipe_;
  Outlet* outlet_ = nullptr;
  int writer_ = 0;
  std::string prefix_;
  std::string line_;  // read, not yet forwarded; contains no newline
};

}  // namespace tonari::cli
