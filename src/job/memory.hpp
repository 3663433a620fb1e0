#pragma once

#include <cstdint>
#include <string>

namespace tonari::job {

/// Returns the bytes of memory that programs can still get: MemAvailable, or less if a control group of
/// this process, or an ancestor of it, has a smaller limit.
std::uint64_t available_memory_bytes();

/// Returns true if that is the limit of a control group.
bool control_group_limits_memory();

/// Returns a clause for an error message: how much that is, and which limit it is.
std::string available_memory_text();

/// Formats bytes for messages: "512 MiB", "3.2 GiB".
std::string memory_text(std::uint64_t bytes);

}  // namespace tonari::job
