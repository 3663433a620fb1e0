#pragma once

#include "predict/programs.hpp"

#include <string>
#include <vector>

namespace tonari::bench::predict {

/// Memory that a rank needs for one purpose.
struct MemoryPart {
  std::string purpose;
  double bytes;
};

/// Returns the memory of the runtime in each rank of a job, by the sizes of its data structures: what the rank has from
/// the start, and its arena segment as if all of it were touched. Not counted: the program and its data, the memory of
/// UCX (connections, addresses of peers), and payloads of unexpected messages.
std::vector<MemoryPart> memory_of_rank(const Shape& shape);

}  // namespace tonari::bench::predict
