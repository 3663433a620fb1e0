#pragma once

#include "base/file_descriptor.hpp"

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tonari::share {

/// An open file whose error messages name the file and a remedy.
class CheckpointFile {
 public:
  /// Makes a new file for writing. Throws SetupError.
  static CheckpointFile make(const std::string& path);
  /// Opens a file that another rank has made, for writing. Throws SetupError.
  static CheckpointFile join(const std::string& path);
  /// Opens a file for reading. If it does not exist, returns a closed file. Throws SetupError.
  static CheckpointFile find(const std::string& path);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] std::uint64_t bytes() const;
  /// Reads or writes all bytes, or throws SetupError.
  void write(std::span<const std::byte> bytes, std::uint64_t place) const;
  void read(std::span<std::byte> bytes, std::uint64_t place) const;
  /// Returns when all written data are on the disk. Throws SetupError.
  void sync() const;

 private:
  CheckpointFile(std::string path, FileDescriptor file) noexcept;
  [[nodiscard]] struct stat status() const;

  std::string path_;
  FileDescriptor file_;
};

/// A temporary file that is to replace `path`. The destructor removes it unless it has replaced `path`.
class Temporary {
 public:
  /// `identity`: a unique number. Also removes temporary files that killed programs have left behind.
  Temporary(const std::string& path, std::uint64_t identity);
  Temporary(Temporary&&) = delete;
  ~Temporary();
  static std::string name_of(const std::string& path, std::uint64_t identity);

  /// Replaces `path`, and returns when that is on the disk. Throws SetupError.
  void replace();

 private:
  std::string path_;
  std::string name_;
};

}  // namespace tonari::share
