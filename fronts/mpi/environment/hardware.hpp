#pragma once

#include <string>
#include <vector>

namespace tonari::mpi {

/// A kind of hardware that is known of this host.
struct HardwareKind {
  std::string name;  ///< As in the info key mpi_hw_resource_type, for example hwloc://NUMANode.
  /// Number of the one of this kind that has all the processors on which this thread may run. -1: they are on several.
  int place;
};

/// Returns the kinds from the largest, the machine, to the smallest, a hardware thread. Reads Linux's description of
/// the processors each time: binding can change.
std::vector<HardwareKind> hardware_kinds();

}  // namespace tonari::mpi
