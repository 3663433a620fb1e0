#pragma once

#include <sched.h>

#include <vector>

namespace tonari::cli {

/// The processors of each core that this process may use, neighbouring cores beside each other. Throws SetupError.
std::vector<cpu_set_t> usable_core_sets();

}  // namespace tonari::cli
