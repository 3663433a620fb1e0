#pragma once

#include <hwloc.h>

#include <memory>

namespace tonari::cli {

struct FreeTopology {
  void operator()(hwloc_topology* topology) const noexcept { ::hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;

/// The machine's; `cores_alone`: without what takes longer to look for than a job to start, its devices. Throws
/// SetupError.
Topology load_topology(bool cores_alone);

}  // namespace tonari::cli
