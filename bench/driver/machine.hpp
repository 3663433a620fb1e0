#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tonari::bench::driver {

/// Returns the member "machine" of the JSON.
nlohmann::ordered_json machine_as_json();

/// The processor time of the whole machine since it started, in clock ticks of all processors together.
struct ProcessorTime {
  std::uint64_t all = 0;
  std::uint64_t idle = 0;    ///< Nothing ran, or a program waited for a disk.
  std::uint64_t stolen = 0;  ///< The hypervisor ran something else.

  static ProcessorTime now();
  /// Returns the difference to an earlier time.
  [[nodiscard]] ProcessorTime since(const ProcessorTime& earlier) const;
};

/// Returns why measurements on this machine may vary or be slow, in sentences: other programs that run now, processors
/// that change their frequency. Takes a fifth of a second.
std::vector<std::string> unfit_before();

/// Returns the same about the time of the run: processor time that the hypervisor took.
std::vector<std::string> unfit_during(const ProcessorTime& run);

}  // namespace tonari::bench::driver
