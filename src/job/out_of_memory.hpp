#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tonari::job {

/// Notices whether the kernel's out-of-memory killer has ended processes on this host since this object was made. The
/// kernel does not tell which: a process that was killed by SIGKILL at that time was probably one of them.
class OutOfMemoryWatch {
 public:
  OutOfMemoryWatch() : kills_before_(kills()) {}
  [[nodiscard]] bool has_killed() const { return kills() > kills_before_; }

  /// Returns a clause for an error message about a process that was killed.
  [[nodiscard]] static std::string explanation_for(std::string_view process);

 private:
  static std::uint64_t kills();

  std::uint64_t kills_before_;
};

}  // namespace tonari::job
