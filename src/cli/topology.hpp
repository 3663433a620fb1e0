#pragma once

#include <hwloc.h>

#include <memory>

namespace tonari::cli {

struct FreeTopology {
  void operator()(hwloc_topology* topology) const noexcept { ::hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;

/// Returns the machine's topology. `cores_alone`: without its devices, because finding them takes longer than starting
/// a job. Throws SetupError.
Topology load_topology(bool cores_alone);

}  // namespace tonari::cli
