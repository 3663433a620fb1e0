#pragma once

#include <cstdint>
#include <functional>

namespace tonari::job {

/// The starter of a process, as far as it matters for joining.
enum class Starter : std::uint8_t { nobody, run, pmix };

/// Returns the value of an environment variable, or null.
using Environment = std::function<const char*(const char* name)>;

/// Detects the starter from the environment. Throws SetupError if a launcher has started several processes without any
/// means to find each other: each process would be a job of its own.
Starter find_starter(const Environment& environment);

}  // namespace tonari::job
