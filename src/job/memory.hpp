#pragma once

#include <cstdint>
#include <string>

namespace tonari::job {

/// Memory that programs can still get: MemAvailable, or less where a control group limits this process.
std::uint64_t available_memory_bytes();

/// Bytes for people: "512 MiB", "3.2 GiB".
std::string memory_text(std::uint64_t bytes);

}  // namespace tonari::job
