#include "far/budget.hpp"

#include <algorithm>

namespace tonari::far {

namespace {

// For the program's own small data and libraries, the keeper and the servers. With Python, all of it took 15 MiB.
constexpr std::uint64_t processes_bytes = 64ULL << 20;

}  // namespace

std::uint64_t usable_bytes(std::uint64_t available) noexcept {
  const std::uint64_t most = available / 10 * 9;
  return std::max(most - std::min(most, processes_bytes), available / 4);
}

// With a limit in bytes, servers lend at least a tenth: the limit may be far above the data, and forked children need
// servers even if all data are local.
std::uint64_t lendable_bytes(std::uint64_t available, const Limit& local) noexcept {
  const std::uint64_t usable = usable_bytes(available);
  if (local.percent != 0) return usable / (100 + local.percent) * 100;
  return std::max(usable - std::min(local.bytes, usable), usable / 10);
}

std::uint64_t local_bytes_max(std::uint64_t available, std::uint64_t lent, const Limit& local) noexcept {
  const std::uint64_t usable = usable_bytes(available);
  return std::max(usable - std::min(lent, usable), usable / (100 + local.percent) * local.percent);
}

}  // namespace tonari::far
