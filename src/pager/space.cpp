#include "pager/space.hpp"

#include "base/error.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

// The parts that all address spaces share whose faults the kernel reports.
namespace tonari::pager {

Space::Space(Userfaultfd faults)
    : faults_(std::move(faults)), stop_doorbell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_doorbell_) throw_system_error("eventfd", "raise the limit of open files with ulimit -n");
}

bool Space::wait_for_faults() noexcept {
  std::array<pollfd, 2> wait{pollfd{faults_.number(), POLLIN, 0}, {stop_doorbell_.number(), POLLIN, 0}};
  if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return false;
  return (wait[1].revents & POLLIN) == 0;
}

void Space::stop_waiting() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(stop_doorbell_.number(), &one, sizeof one);
}

void Space::wake_waiting(Address start, const std::atomic<std::uint32_t>& /*word*/) noexcept {
  faults_.wake(start, block_bytes);
}

std::span<std::byte> Space::tables(Address /*start*/, std::size_t /*bytes*/, std::size_t /*table_bytes*/) { return {}; }

std::uint64_t Space::reference_to(std::span<const std::byte> /*bytes*/) noexcept { return 0; }

PageSet Space::protect(Address /*block*/, const PageSet& /*pages*/, Sums /*sums*/) noexcept { return {}; }

bool Space::read_in_place(Address /*block*/, const PageSet& /*pages*/, std::size_t /*first*/,
                          std::byte* /*to*/) noexcept {
  return false;
}

PageSet Space::drop_protected(Address /*block*/, const PageSet& /*pages*/, const PageSet& /*going*/) noexcept {
  return {};
}

}  // namespace tonari::pager
