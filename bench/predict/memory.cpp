#include "predict/memory.hpp"

#include "base/settings.hpp"
#include "fabric/network.hpp"
#include "job/arena.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>

namespace tonari::bench::predict {

std::vector<MemoryPart> memory_of_rank(const Shape& shape) {
  const double ranks = shape.ranks;
  const double remote = shape.ranks - std::min(shape.ranks, shape.ranks_per_host);
  const double segment = static_cast<double>(Settings{}.ring_slots * job::cache_line_bytes + job::segment_fixed_bytes);
  std::vector<MemoryPart> parts{
      {"rings, bulk memory and boards, if touched", segment},
      {"its block, and a copy of each remote rank's", (1 + remote) * static_cast<double>(sizeof(job::RankBlock))},
      {"sends held back and states, per rank", ranks * static_cast<double>(message::MessageRuntime::bytes_per_rank())},
      {"ranks by host, of one communicator",
       ranks * (sizeof(std::size_t) + sizeof(int)) + shape.hosts() * static_cast<double>(sizeof(std::size_t))}};
  if (shape.hosts() > 1) {
    parts.push_back(
        {"frames and order of heads, per peer", ranks * static_cast<double>(fabric::Network::bytes_per_peer())});
  }
  return parts;
}

}  // namespace tonari::bench::predict
