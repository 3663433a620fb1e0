#include "job/neighbour.hpp"

#include "job/handshake.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>

namespace tonari::job {

void admit_neighbours() noexcept { ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); }  // fails without Yama

bool can_copy_from(const Arena& arena, int rank) noexcept {
  const RankBlock& block = arena.block(rank);
  // Written before the message that asks to try.
  const auto address = block.probe.load(std::memory_order_relaxed);
  const auto process = block.pid.load(std::memory_order_relaxed);

  std::uint64_t found = 0;
  const iovec here{.iov_base = &found, .iov_len = sizeof found};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = sizeof found};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof found && found == probe_value(rank);
}

}  // namespace tonari::job
