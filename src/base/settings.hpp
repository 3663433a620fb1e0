#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tonari {

/// Every setting of tonari, with its default. Settings are read once, when a job is joined, and do not change
/// afterwards.
struct Settings {
  std::string apart = "none";
  std::uint64_t apart_ranks = 1;
  std::string network = "any";
  std::uint64_t split = 48;
  std::uint64_t ring_slots = 1024;
  std::uint64_t direct_bytes = 12 * 1024;
  std::uint64_t put_bytes = 32 * 1024;
  std::uint64_t chunk_bytes = 256 * 1024;
  std::uint64_t unexpected_bytes = 64 << 20;
  std::uint64_t scan_depth = 64;
  std::uint64_t join_seconds = 30;
  std::uint64_t warn_seconds = 10;
  std::uint64_t share_bytes = 1ULL << 40;
  bool direct_copies = true;
  bool service_thread = true;
  bool newest_kernel = true;
  bool wrap_calls = true;
  std::string log = "warn";
};

/// Where a setting's value came from.
enum class Origin : std::uint8_t { built_in, environment, job };
std::string_view to_string(Origin origin) noexcept;

/// One setting as it is shown to users.
struct SettingText {
  std::string_view name;  ///< The environment variable, TONARI_...
  std::string value;
  std::string built_in;
  Origin origin;
  std::string_view meaning;
};

/// Reads the TONARI_... variables of the environment, then `overrides` (NAME=VALUE, for one job). Sizes take the units
/// K, M, G and T (powers of 1024). An empty value, in the environment or in an override, means the default. Throws
/// SetupError that names the variable, its value and the accepted values.
Settings read_settings(std::span<const std::string> overrides = {});

/// Returns every setting with its value and the source of the value, in the order of the documentation.
std::vector<SettingText> describe_settings(std::span<const std::string> overrides = {});

/// Returns one line for each TONARI_... variable of the environment that is neither a setting nor set by the runtime.
/// The line names the nearest setting. Rank 0 logs these lines once per job.
std::vector<std::string> unknown_settings();

}  // namespace tonari
