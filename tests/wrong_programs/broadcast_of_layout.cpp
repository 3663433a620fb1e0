// Collectives take buffers without gaps.
// error: static assertion failed: a collective takes a buffer without gaps, not a layout
#include <tonari/tonari.hpp>

#include <span>
#include <vector>

tonari::Status share_column(tonari::Communicator& world, std::vector<int>& matrix) {
#ifdef WRONG
  return world.broadcast(tonari::Strided{matrix, 10, 1, 10}, tonari::Rank{0});
#else
  return world.broadcast(std::span(matrix).first(10), tonari::Rank{0});
#endif
}
