#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <numeric>
#include <span>
#include <string>

namespace tonari::bench {

inline constexpr std::size_t line_bytes = 64;

/// Returns the size of the largest cache of the first processor; 32 MiB if the system does not report it.
inline std::size_t last_level_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t kibibytes = 0;  // the file says "32768K"
    if (file >> kibibytes) largest = std::max(largest, kibibytes << 10);
  }
  return largest != 0 ? largest : std::size_t{32} << 20;
}

/// Memory from the system, with all pages present.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(std::max(bytes, line_bytes)) {
    auto* start = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<std::byte*>(start);
    std::memset(start_, 1, bytes_);
  }
  Memory(Memory&&) = delete;
  ~Memory() { ::munmap(start_, bytes_); }

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {start_, bytes_}; }

 private:
  std::byte* start_;
  std::size_t bytes_;
};

/// Hands out buffers of one size from a pool: always the same one (warm), or a different one each time (cold). Cold
/// buffers come in an order that visits all before any is repeated. Successive ones are distant, so that no prefetcher
/// predicts the next.
class Buffers {
 public:
  Buffers(std::span<std::byte> pool, std::size_t bytes, bool cold) noexcept
      : pool_(pool.data()),
        bytes_(bytes),
        stride_((std::max<std::size_t>(bytes, 1) + line_bytes - 1) / line_bytes * line_bytes) {
    slots_ = cold ? std::max<std::size_t>(pool.size() / stride_, 1) : 1;
    step_ = static_cast<std::size_t>(static_cast<double>(slots_) * 0.618) | 1;
    while (std::gcd(step_, slots_) != 1) step_ += 2;
    if (step_ >= slots_) step_ = slots_ == 1 ? 0 : 1;
  }

  std::span<std::byte> next() noexcept {
    last_ = slot_;
    slot_ += step_;
    if (slot_ >= slots_) slot_ -= slots_;
    return last();
  }
  /// The buffers that next() returned last and will return next.
  [[nodiscard]] std::span<std::byte> last() const noexcept { return {pool_ + last_ * stride_, bytes_}; }
  [[nodiscard]] std::span<std::byte> coming() const noexcept { return {pool_ + slot_ * stride_, bytes_}; }

 private:
  std::byte* pool_;
  std::size_t bytes_;
  std::size_t stride_;
  std::size_t slots_;
  std::size_t step_;
  std::size_t slot_ = 0;
  std::size_t last_ = 0;
};

/// Returns four times the size of the last-level cache, at most a sixteenth of this host's memory.
inline std::size_t cold_pool_bytes() {
  const auto memory =
      static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return std::min(4 * last_level_cache_bytes(), memory / 16);
}

/// Memory that evicts everything else from the caches when it is read.
class OtherMemory {
 public:
  explicit OtherMemory(bool cold) : memory_(cold ? cold_pool_bytes() : 0) {}

  void read() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t at = 0; at < memory_.bytes().size(); at += line_bytes)
      sum += static_cast<std::uint64_t>(memory_.bytes()[at]);
    asm volatile("" : : "r"(sum));
  }

 private:
  Memory memory_;
};

/// The pools of one rank.
class Pools {
 public:
  /// A cold pool has cold_pool_bytes(), or room for two of the longest buffers if that is more.
  Pools(std::size_t buffer_bytes_max, bool cold)
      : bytes_(cold ? std::max(cold_pool_bytes(), 2 * buffer_bytes_max) : buffer_bytes_max),
        out_(bytes_),
        in_(bytes_),
        other_(cold) {}

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Buffers out(std::size_t bytes, bool cold) const noexcept { return {out_.bytes(), bytes, cold}; }
  [[nodiscard]] Buffers in(std::size_t bytes, bool cold) const noexcept { return {in_.bytes(), bytes, cold}; }

  void empty_caches() const noexcept { other_.read(); }

 private:
  std::size_t bytes_;
  Memory out_;
  Memory in_;
  OtherMemory other_;
};

/// Bytes that depend on the sender (`seed`) and on the position, and a check whether a buffer contains them.
inline void fill_pattern(std::span<std::byte> bytes, unsigned seed) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + (i >> 8) + seed);
}
inline bool has_pattern(std::span<const std::byte> bytes, unsigned seed) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(i * 131 + (i >> 8) + seed)) return false;
  }
  return true;
}

}  // namespace tonari::bench
