#include "job/pool.hpp"

#include "base/error.hpp"
#include "job/arena.hpp"
#include "job/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>

namespace tonari::job {

std::uint32_t Pool::take(std::uint64_t bytes) {
  if (bytes > available_memory_bytes()) {
    throw SetupError(
        fmt::format("{} of shared memory were requested, but {}", memory_text(bytes), available_memory_text()));
  }
  const std::uint64_t granules = std::max<std::uint64_t>((bytes + pool_granule_bytes - 1) / pool_granule_bytes, 1);
  std::uint32_t taken =
      header_->pool_taken.load(std::memory_order_relaxed);  // relaxed: the numbers only have to be unique
  do {
    if (granules > header_->pool_granules - taken) {
      throw SetupError(fmt::format(
          "{} of shared memory do not fit any more into the {} that this job can allocate in its life: see ulimit -f",
          memory_text(bytes), memory_text(header_->pool_granules * pool_granule_bytes)));
    }
  } while (!header_->pool_taken.compare_exchange_weak(taken, taken + static_cast<std::uint32_t>(granules),
                                                      std::memory_order_relaxed));
  return taken + 1;
}

bool Pool::is_taken(std::uint32_t granule) const noexcept {
  return granule != 0 && granule <= header_->pool_taken.load(std::memory_order_relaxed);
}

std::shared_ptr<Mapping> Pool::map(std::uint32_t granule, std::uint64_t bytes) {
  const std::lock_guard guard(mutex_);
  std::weak_ptr<Mapping>& known = mapped_[granule];
  if (auto mapping = known.lock()) return mapping;
  const auto forget = [this, granule](Mapping* mapping) {
    {
      const std::lock_guard in_turn(mutex_);
      if (const auto found = mapped_.find(granule); found != mapped_.end() && found->second.expired()) {
        mapped_.erase(found);
      }
    }
    delete mapping;
  };
  std::shared_ptr<Mapping> mapping(new Mapping(look(granule, bytes)), forget);
  known = mapping;
  return mapping;
}

Mapping Pool::look(std::uint32_t granule, std::uint64_t bytes) const {
  return {file_, bytes, "memory of a window", offset_of(granule)};
}

void Pool::map_at(std::byte* address, std::uint64_t place, std::uint64_t bytes) const {
  constexpr int rights = PROT_READ | PROT_WRITE;
  void* const got = ::mmap(address, bytes, rights, MAP_SHARED | MAP_FIXED, file_, static_cast<off_t>(place));
  if (got == MAP_FAILED || ::madvise(got, bytes, MADV_DONTFORK) != 0) {
    throw_system_error(fmt::format("mmap of {} bytes of the job's memory", bytes),
                       "free memory, or raise the limit: see ulimit -v and vm.max_map_count");
  }
}

std::optional<std::uint64_t> Pool::place_of(const std::byte* byte) {
  const std::lock_guard guard(mutex_);
  for (const auto& [granule, known] : mapped_) {
    const auto mapping = known.lock();
    if (!mapping) continue;
    const auto place = static_cast<std::uint64_t>(byte - mapping->bytes().data());
    if (byte >= mapping->bytes().data() && place < mapping->bytes().size()) return offset_of(granule) + place;
  }
  return std::nullopt;
}

void Pool::give_back(std::uint32_t granule, std::uint64_t bytes) noexcept {
  ::fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset_of(granule)),
              static_cast<off_t>(bytes));
}

}  // namespace tonari::job
