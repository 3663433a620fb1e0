#include "job/neighbour.hpp"

#include "job/handshake.hpp"

#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace tonari::job {

namespace {

// Reads the word and writes the same value back: a kernel or a filter of system calls may allow only one of them.
bool can_copy(pid_t process, std::uint64_t address, std::uint64_t expected) noexcept {
  std::uint64_t found = 0;
  const iovec here{.iov_base = &found, .iov_len = sizeof found};
  const iovec there{.iov_base = reinterpret_cast<void*>(address), .iov_len = sizeof found};
  return ::process_vm_readv(process, &here, 1, &there, 1, 0) == sizeof found && found == expected &&
         ::process_vm_writev(process, &here, 1, &there, 1, 0) == sizeof found;
}

}  // namespace

void admit_neighbours() noexcept {
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
}  // fails harmlessly without Yama

bool can_copy_from(const Arena& arena, int rank) noexcept {
  const RankBlock& block = arena.block(rank);
  // Relaxed: both were written before the message that asks for this test.
  const auto address = block.probe.load(std::memory_order_relaxed);
  const auto process = block.pid.load(std::memory_order_relaxed);
  return can_copy(process, address, probe_value(rank));
}

bool can_copy_here() noexcept {
  std::uint64_t word = probe_value(0);
  return can_copy(::getpid(), reinterpret_cast<std::uint64_t>(&word), probe_value(0));
}

}  // namespace tonari::job
