#pragma once

#include <sched.h>

#include <vector>

namespace tonari::cli {

/// Returns the processors of each core that this process may use; neighbouring cores are beside each other. Throws
/// SetupError.
std::vector<cpu_set_t> usable_core_sets();

/// Throws SetupError if the system refuses to bind processes of ours to processors, as sandboxes may.
void check_binding_is_allowed();

}  // namespace tonari::cli
