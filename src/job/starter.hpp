#pragma once

#include <cstdint>
#include <functional>

namespace tonari::job {

/// Who started a process, as far as it matters for joining.
enum class Starter : std::uint8_t { nobody, run, pmix };

/// The value of a variable of the environment, or null.
using Environment = std::function<const char*(const char* name)>;

/// Finds out from the environment. Throws SetupError when a launcher has started several processes and gave them
/// nothing by which they could find each other: each would be a job of one.
Starter find_starter(const Environment& environment);

}  // namespace tonari::job
