#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace tonari::job {

/// Returns the smallest memory limit, in bytes, of this process's control groups (cgroup v1 and v2) and of all their
/// ancestors that this process can see; nothing if none of them has a limit. Limits of ancestors outside of a
/// container's view are not seen.
///
/// `root` is where /proc and the mounted control groups are looked up: another folder than / only in tests.
std::optional<std::uint64_t> control_group_memory_limit(const std::filesystem::path& root = "/");

}  // namespace tonari::job
