#pragma once

#include "base/file_descriptor.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <optional>

namespace tonari::cli {

/// While it lives, the signals of this process are blocked, and read from a descriptor.
class SignalInbox {
 public:
  SignalInbox();  ///< Throws SetupError.
  ~SignalInbox();
  SignalInbox(SignalInbox&&) = delete;

  struct Signal {
    int number;
    bool from_terminal;  ///< Then every process of the terminal's foreground group received it.
  };
  std::optional<Signal> next() noexcept;
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }
  [[nodiscard]] const sigset_t& mask_before() const noexcept { return mask_before_; }

 private:
  sigset_t mask_before_{};
  struct sigaction pipe_before_ {};
  FileDescriptor descriptor_;
};

/// While it lives, the limit of descriptors is high enough for so many ranks. Throws SetupError if the hard limit is
/// too low.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(int ranks);
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(DescriptorLimit&&) = delete;

  [[nodiscard]] const rlimit& before() const noexcept { return before_; }

 private:
  rlimit before_{};
};

}  // namespace tonari::cli
