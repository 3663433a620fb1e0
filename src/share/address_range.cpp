#include "share/address_range.hpp"

#include "base/error.hpp"
#include "job/memory.hpp"
#include "pager/userfaultfd.hpp"
#include "share/agreement.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <spdlog/logger.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>

namespace tonari::share {

namespace {

constexpr std::uint64_t granule_bytes = 2 << 20;  // alignment of a huge page
// Arrays do not begin at the same offset of a granule: equal parts of them would compete for the same sets of the
// caches.
constexpr std::uint64_t shift_bytes = 11 * 4096;
constexpr std::uint64_t shifts = 23;
constexpr std::uint64_t addresses_max = std::uint64_t{1} << 47;  // of a process on x86-64
constexpr std::uint64_t bytes_of_threads_max = 64ULL << 30;      // ranks that are threads share one address space
constexpr std::uint64_t first_tried = 0x2000'0000'0000;  // away from the addresses that the kernel chooses for mappings
constexpr std::uint64_t step_tried = 0x0200'0000'0000;
constexpr int fixed_tries = 16;
constexpr int tries_max = 2 * fixed_tries;

std::byte* reserve(void* wish, std::uint64_t bytes) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const got = ::mmap(wish, bytes, PROT_NONE, flags | (wish != nullptr ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (got == MAP_FAILED) return nullptr;
  if (wish != nullptr && got != wish) {  // an old kernel takes the address as a hint
    ::munmap(got, bytes);
    return nullptr;
  }
  return static_cast<std::byte*>(got);
}

// Returns the limit of addresses of this process.
std::string limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return fmt::format(" (here: {})", job::memory_text(limit.rlim_cur));
}

bool all_have(Communicator& ranks, const std::byte* mine) {
  const std::array<std::uint64_t, 1> has{mine != nullptr ? 1U : 0U};
  return agree(ranks, nullptr, "shared memory", has)[0].least == 1;
}

}  // namespace

AddressRange::AddressRange(job::Session& session, Communicator& ranks) : bytes_(session.settings().share_bytes) {
  if (session.threads()) bytes_ = std::min(bytes_, bytes_of_threads_max);
  bytes_ = bytes_ / granule_bytes * granule_bytes;
  start_ = session.threads() ? reserve(nullptr, bytes_) : agree(session, ranks);
  if (!session.threads() && start_ != nullptr) return;
  if (all_have(ranks, start_)) return;
  if (start_ != nullptr) ::munmap(start_, bytes_);
  throw SetupError(
      fmt::format("shared memory: it keeps {} of addresses for all that will be made, and they are not free in all "
                  "ranks: raise ulimit -v{}, or set TONARI_SHARE_BYTES to the bytes that the arrays need",
                  job::memory_text(bytes_), limit_text()));
}

// Tries addresses that are most likely free in every process, and then addresses that the kernel has chosen for the
// first rank. Returns null, in all ranks, if no range was free in all of them.
std::byte* AddressRange::agree(job::Session& session, Communicator& ranks) const {
  for (int attempt = 0; attempt < tries_max; ++attempt) {
    const std::uint64_t wish = first_tried + static_cast<std::uint64_t>(attempt) * step_tried;
    std::array<std::uint64_t, 1> address{attempt < fixed_tries ? wish : 0};
    std::byte* mine = nullptr;
    if (attempt >= fixed_tries) {
      if (session.rank() == 0) mine = reserve(nullptr, bytes_);
      address[0] = reinterpret_cast<std::uint64_t>(mine);
      if (ranks.broadcast(address, Rank{0}) != Status::ok) address[0] = 0;
    }
    if (mine == nullptr && address[0] != 0) mine = reserve(reinterpret_cast<void*>(address[0]), bytes_);
    if (all_have(ranks, mine)) return mine;
    if (mine != nullptr) ::munmap(mine, bytes_);
  }
  return nullptr;
}

// Ranks that are threads have a range each, and tonari run loads no preload library into their process.
void AddressRange::tell_unreached(const job::Session& session) {
  auto* const tell =
      session.threads() ? nullptr : reinterpret_cast<TellUnreached*>(::dlsym(RTLD_DEFAULT, name_of_unreached));
  const int error = tell != nullptr ? tell(start_, bytes_) : 0;
  if (tell != nullptr && error == 0) tell_ = tell;
  if (tell_ != nullptr || session.rank() != 0) return;
  session.log().info(
      "system calls that meet shared memory which is not here yet will fail{}: start the program with "
      "tonari run, without TONARI_WRAP_CALLS=off, or {}",
      error != 0 ? fmt::format(" ({})", std::generic_category().message(error)) : "", pager::remedy_for_reach);
}

AddressRange::~AddressRange() {
  if (tell_ != nullptr) (void)tell_(nullptr, 0);
  ::munmap(start_, bytes_);
}

void AddressRange::expect_room_for(std::uint64_t bytes) const {
  if (bytes > bytes_) refuse(bytes);
}

void AddressRange::refuse(std::uint64_t bytes) const {
  if (bytes > addresses_max) {
    throw SetupError(
        fmt::format("{} of shared memory were asked for, and no program has so many addresses: look whether the number "
                    "of elements, or a product in it, overflows",
                    job::memory_text(bytes)));
  }
  throw SetupError(
      fmt::format("{} of shared memory were asked for, and of the {} of addresses for it too few are free: set "
                  "TONARI_SHARE_BYTES higher",
                  job::memory_text(bytes), job::memory_text(bytes_)));
}

std::byte* AddressRange::take(std::uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  const std::uint64_t needed = (bytes + shifts * shift_bytes + granule_bytes - 1) / granule_bytes * granule_bytes;
  std::byte* place = start_;
  for (const auto& [start, taken] : taken_) {
    if (needed <= static_cast<std::uint64_t>(start - place)) break;
    place = start + taken;
  }
  if (needed < bytes || needed > static_cast<std::uint64_t>(start_ + bytes_ - place)) refuse(bytes);
  taken_[place] = needed;
  return place + static_cast<std::uint64_t>(place - start_) / granule_bytes % shifts * shift_bytes;
}

void AddressRange::give_back(std::byte* start) noexcept {
  const std::lock_guard guard(mutex_);
  auto found = taken_.upper_bound(start);
  if (found == taken_.begin()) return;
  --found;
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  // If the kernel refuses (too many mappings), the old mapping stays and is not used.
  (void)::mmap(found->first, found->second, PROT_NONE, flags, -1, 0);
  taken_.erase(found);
}

}  // namespace tonari::share
