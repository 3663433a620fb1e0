#pragma once

#include "base/file_descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::cli {

/// Where lines of many writers go: standard output or standard error of this process. Never blocks, whatever reads it.
///
/// A writer's line stays in one piece: when another one writes while a line is unfinished, a newline comes between.
class Outlet {
 public:
  static constexpr std::size_t waiting_bytes_max = 1 << 20;

  explicit Outlet(int number);

  /// Appends text of a writer, who is known by any number that is not negative.
  void write(int writer, std::string_view text);
  /// True when this writer wrote last and its line is unfinished.
  [[nodiscard]] bool has_open_line(int writer) const noexcept { return open_line_ == writer; }

  /// Writes what the reader takes now.
  void flush() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return written_ == waiting_.size(); }
  /// True when writers should pause until some of it is gone.
  [[nodiscard]] bool is_full() const noexcept { return waiting_.size() - written_ > waiting_bytes_max; }
  /// The error that ended writing, such as EPIPE or ENOSPC; 0 while there is none. Later text is dropped.
  [[nodiscard]] int error() const noexcept { return write_error_; }
  [[nodiscard]] bool is_broken() const noexcept { return write_error_ != 0; }
  [[nodiscard]] int number() const noexcept { return number_; }
  /// True when both lead to the same place, where pieces of lines would mix.
  [[nodiscard]] bool is_same_place(const Outlet& other) const noexcept;

 private:
  static constexpr int nobody = -1;

  int number_;
  std::size_t piece_bytes_max_;  // what can be written without blocking once poll says that something can
  std::string waiting_;
  std::size_t written_ = 0;  // of waiting_
  int open_line_ = nobody;
  int write_error_ = 0;
};

/// One rank's standard output or error, cut into lines on the way to an outlet.
class Stream {
 public:
  static constexpr std::size_t line_bytes_max = 64 * 1024;  // longer lines are passed on in pieces

  Stream() = default;
  /// `prefix` begins each line. `writer` tells the outlet's writers apart.
  Stream(FileDescriptor pipe, Outlet& outlet, int writer, std::string prefix);

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(pipe_); }
  [[nodiscard]] const FileDescriptor& pipe() const noexcept { return pipe_; }
  [[nodiscard]] const Outlet& outlet() const noexcept { return *outlet_; }
  /// Passes on what there is to read, as far as the outlet has room. Closes itself at the end.
  void read_on();
  /// Passes on an unfinished line too, for someone who waits for it at a terminal.
  void show_unfinished();
  [[nodiscard]] bool has_unfinished() const noexcept { return !line_.empty(); }
  /// Passes on the rest. What the writer's children may still write later is lost.
  void close();

 private:
  void pass_lines();
  void pass(std::string_view piece);

  FileDescriptor pipe_;
  Outlet* outlet_ = nullptr;
  int writer_ = 0;
  std::string prefix_;
  std::string line_;  // read, and not passed on: no newline in it
};

}  // namespace tonari::cli
