#pragma once

#include "base/file_descriptor.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

// Files that fail, for tests of the stores of far memory.
namespace tonari::test {

/// A file in memory, and a second descriptor of it.
struct MemoryFile {
  MemoryFile() : file(::memfd_create("far_file_store", MFD_CLOEXEC)), other(::dup(file.number())) {}
  FileDescriptor file;
  FileDescriptor other;
};

/// Limits the size of this process's files. Writing or reserving space beyond it returns EFBIG, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limited{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limited), 0);
    signal_before_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  FileSizeLimit(FileSizeLimit&&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, signal_before_);
  }

 private:
  rlimit before_{};
  void (*signal_before_)(int) = SIG_DFL;
};

}  // namespace tonari::test
