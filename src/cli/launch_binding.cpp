#include "cli/launch_binding.hpp"

#include "cli/launch.hpp"
#include "cli/topology.hpp"

#include <tonari/status.hpp>

#include <hwloc/glibc-sched.h>

#include <algorithm>

namespace tonari::cli {

std::vector<cpu_set_t> usable_core_sets() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) {
    throw SetupError("this machine has more than 1024 processors: use -n and --bind none");
  }
  const Topology topology = load_topology(true);
  const int cores = ::hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  std::vector<cpu_set_t> sets;
  for (int i = 0; i < cores; ++i) {
    const auto* const core = ::hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    cpu_set_t set;
    ::hwloc_cpuset_to_glibc_sched_affinity(topology.get(), core->cpuset, &set, sizeof set);
    CPU_AND(&set, &set, &mine);
    if (CPU_COUNT(&set) > 0) sets.push_back(set);
  }
  if (sets.empty()) sets.push_back(mine);
  return sets;
}

int usable_cores() { return static_cast<int>(usable_core_sets().size()); }

}  // namespace tonari::cli
