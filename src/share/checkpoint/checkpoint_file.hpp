#pragma once

#include "base/file_descriptor.hpp"

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tonari::share {

/// An open file whose errors name it, and say what helps.
class CheckpointFile {
 public:
  /// A new one, to be written. Throws SetupError.
  static CheckpointFile make(const std::string& path);
  /// One that another rank has made, to be written. Throws SetupError.
  static CheckpointFile join(const std::string& path);
  /// To be read; closed, if there is none. Throws SetupError.
  static CheckpointFile find(const std::string& path);

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] std::uint64_t bytes() const;
  /// All of it, or it throws SetupError.
  void write(std::span<const std::byte> bytes, std::uint64_t place) const;
  void read(std::span<std::byte> bytes, std::uint64_t place) const;
  /// Returns when all that was written is on the disk. Throws SetupError.
  void sync() const;

 private:
  CheckpointFile(std::string path, FileDescriptor file) noexcept;
  [[nodiscard]] struct stat status() const;

  std::string path_;
  FileDescriptor file_;
};

/// The name under which a file is written that is to replace `path`. Gone when this is, unless it has replaced it.
class Temporary {
 public:
  /// `identity`: a number that no other has. Removes those that were left behind by who could not.
  Temporary(const std::string& path, std::uint64_t identity);
  Temporary(Temporary&&) = delete;
  ~Temporary();
  static std::string name_of(const std::string& path, std::uint64_t identity);

  /// Returns when it is so on the disk. Throws SetupError.
  void replace();

 private:
  std::string path_;
  std::string name_;
};

}  // namespace tonari::share
