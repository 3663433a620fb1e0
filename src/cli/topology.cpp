#include "cli/topology.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <sched.h>

#include <cerrno>
#include <string>

namespace tonari::cli {

Topology load_topology(bool cores_alone) {
  // Where a sandbox refuses this call, hwloc repeats it for ever. EINVAL: more processors than cpu_set_t has.
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) != 0 && errno != EINVAL) {
    throw_system_error("sched_getaffinity", "let the sandbox's filter allow the call");
  }
  hwloc_topology_t made = nullptr;
  if (::hwloc_topology_init(&made) != 0) throw SetupError("hwloc cannot be initialised");
  Topology topology{made};
  if (cores_alone) {
    ::hwloc_topology_set_all_types_filter(made, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    ::hwloc_topology_set_type_filter(made, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  }
  if (::hwloc_topology_load(made) != 0) {
    throw SetupError(std::string("hwloc cannot read the machine's topology") +
                     (cores_alone ? "; use --bind none" : ""));
  }
  return topology;
}

}  // namespace tonari::cli
