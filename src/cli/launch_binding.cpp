#include "cli/launch_binding.hpp"

#include "cli/launch.hpp"

#include <tonari/status.hpp>

#include <hwloc.h>
#include <hwloc/glibc-sched.h>

#include <algorithm>
#include <memory>

namespace tonari::cli {

namespace {

struct FreeTopology {
  void operator()(hwloc_topology* topology) const noexcept { ::hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;

Topology load_topology() {
  hwloc_topology_t made = nullptr;
  if (::hwloc_topology_init(&made) != 0) throw SetupError("hwloc cannot be initialised");
  Topology topology{made};
  // Cores alone: devices take longer to look for than a job to start.
  ::hwloc_topology_set_all_types_filter(made, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  ::hwloc_topology_set_type_filter(made, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (::hwloc_topology_load(made) != 0) throw SetupError("hwloc cannot read the machine's topology; use --bind none");
  return topology;
}

}  // namespace

std::vector<cpu_set_t> usable_core_sets() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0) {
    throw SetupError("this machine has more than 1024 processors: use -n and --bind none");
  }
  const Topology topology = load_topology();
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
