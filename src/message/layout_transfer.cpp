#include "message/layout_transfer.hpp"

#include "base/cache.hpp"
#include "fabric/bulk.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace tonari::message {

namespace {

constexpr std::size_t part_bytes_max = 32 * 1024;
constexpr std::size_t part_bytes = 2048;  // of data that are packed to shared memory or unpacked from it

// The kernel takes about 50 ns per run, while packing copies all bytes once more. So lists take 1.0 times as long as
// packing if the runs have 256 bytes, 0.8 times with 512 bytes, 0.7 with 1 KiB, and 0.6 with 4 KiB.
bool has_long_runs(const LayoutCursor& data) noexcept {
  constexpr std::size_t long_run_bytes = 1024;
  return data.bytes() / long_run_bytes >= data.runs();
}

// Calls `copy(place, runs)` for some runs at a time, which belong to contiguous memory at `place` of the other rank.
template <class Copy>
Status copy_runs(LayoutCursor& data, std::size_t offset, std::uint64_t place, std::size_t bytes, Copy&& copy) noexcept {
  constexpr std::size_t runs_at_a_time = 256;
  static_assert(runs_at_a_time <= fabric::DirectCopy::stretches_max_here);
  std::array<iovec, runs_at_a_time> runs;
  std::size_t count = 0;
  std::size_t collected = 0;
  Status status = Status::ok;
  const auto flush = [&] {
    if (count != 0 && status == Status::ok) status = copy(place, std::span<const iovec>(runs).first(count));
    place += collected;
    collected = 0;
    count = 0;
  };
  data.for_each_run(offset, bytes, [&](std::byte* first, std::size_t length) {
    if (count == runs.size()) flush();
    runs[count++] = {first, length};
    collected += length;
  });
  flush();
  return status;
}

Status write_packed(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t to,
                    std::size_t bytes) noexcept {
  std::array<std::byte, part_bytes_max> packed;
  Status status = Status::ok;
  for (std::size_t done = 0; done < bytes && status == Status::ok; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    data.pack(offset + done, packed.data(), part);
    status = copy.write(to + done, packed.data(), part);
  }
  return status;
}

Status read_packed(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                   std::size_t bytes) noexcept {
  std::array<std::byte, part_bytes_max> packed;
  for (std::size_t done = 0; done < bytes; done += packed.size()) {
    const std::size_t part = std::min(packed.size(), bytes - done);
    const Status status = copy.read(packed.data(), from + done, part);
    if (status != Status::ok) return status;
    data.unpack(offset + done, packed.data(), part);
  }
  return Status::ok;
}

// Calls `copy(done, part)` for parts of `bytes`. Before that, it calls `fetch(place)` for each cache line of the part
// and of the next one. Parts of 1 KiB take 1.15 times as long for rows of 1 KiB, parts of 4 KiB 1.1 times.
template <class Fetch, class Copy>
void copy_fetched(std::size_t bytes, Fetch&& fetch, Copy&& copy) noexcept {
  std::size_t fetched = 0;
  for (std::size_t done = 0; done < bytes; done += part_bytes) {
    const std::size_t end = std::min(bytes, done + 2 * part_bytes);
    for (; fetched < end; fetched += fabric::head_bytes) fetch(fetched);
    copy(done, std::min(part_bytes, bytes - done));
  }
}

void pack_parts(LayoutCursor& data, std::size_t offset, std::byte* to, std::size_t bytes, bool fetches) noexcept {
  copy_fetched(
      bytes,
      [to, fetches](std::size_t place) {
        if (fetches) prefetch_to_write(to + place);
      },
      [&](std::size_t done, std::size_t part) { data.pack(offset + done, to + done, part); });
}

constexpr std::size_t block_bytes = fabric::bulk_tail_bytes_max;

// Packs into this core's cache first, and then overwrites the block.
void pack_unfetched(LayoutCursor& data, std::size_t offset, std::byte* to) noexcept {
  alignas(fabric::head_bytes) std::array<std::byte, block_bytes> packed;
  // In parts, because std::memcpy copies long runs slowly from other caches on some processors.
  pack_parts(data, offset, packed.data(), block_bytes, false);
  copy_without_fetching(to, packed.data(), block_bytes);
}

// Packs whole blocks of one thread. If the two cores share no cache, long messages take half as long when the lines of
// blocks are overwritten than when they are fetched; otherwise 1.1 times as long. Virtual machines move from one case
// to the other while they run. So from time to time the thread measures both ways in one message.
class BlockPacker {
 public:
  void pack(LayoutCursor& data, std::size_t offset, std::byte* to) noexcept {
    if (until_trial_ == 0 && data.bytes() - offset >= trial_blocks * block_bytes) start_trial(offset);
    if (trial_left_ == 0) [[likely]] {
      if (until_trial_ != 0) --until_trial_;
      return pack(fetches_, data, offset, to);
    }
    if (offset != next_offset_) trial_left_ = 0;  // another message: its layout may be slower
    if (trial_left_ == 0) return pack(fetches_, data, offset, to);
    const bool fetches = trial_left_ % 2 == 0;
    const auto begin = Clock::now();
    pack(fetches, data, offset, to);
    (fetches ? with_fetching_ : without_) += Clock::now() - begin;
    next_offset_ += block_bytes;
    if (--trial_left_ == 0) fetches_ = with_fetching_ * 2 / 3 <= without_;  // they vary, so in doubt it fetches
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr unsigned trial_blocks = 4;
  static constexpr unsigned blocks_between_trials = 128;

  static void pack(bool fetches, LayoutCursor& data, std::size_t offset, std::byte* to) noexcept {
    fetches ? pack_parts(data, offset, to, block_bytes, true) : pack_unfetched(data, offset, to);
  }
  void start_trial(std::size_t offset) noexcept {
    trial_left_ = trial_blocks;
    until_trial_ = blocks_between_trials;
    next_offset_ = offset;
    with_fetching_ = without_ = Clock::duration::zero();
  }

  bool fetches_ = true;
  unsigned until_trial_ = 0;     // blocks
  unsigned trial_left_ = 0;      // blocks
  std::size_t next_offset_ = 0;  // of the trial, in its message
  Clock::duration with_fetching_{};
  Clock::duration without_{};
};

}  // namespace

void pack_to_shared(LayoutCursor& data, std::size_t offset, std::byte* to, std::size_t bytes) noexcept {
  static constinit thread_local BlockPacker blocks;
  if (bytes == block_bytes) return blocks.pack(data, offset, to);
  pack_parts(data, offset, to, bytes, true);
}

void unpack_from_shared(LayoutCursor& data, std::size_t offset, const std::byte* from, std::size_t bytes) noexcept {
  copy_fetched(
      bytes, [from](std::size_t place) { __builtin_prefetch(from + place); },
      [&](std::size_t done, std::size_t part) { data.unpack(offset + done, from + done, part); });
}

Status write_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t to,
                       std::size_t bytes) noexcept {
  if (copy.is_here()) {
    data.pack(offset, reinterpret_cast<std::byte*>(to), bytes);
    return Status::ok;
  }
  if (!has_long_runs(data)) return write_packed(data, copy, offset, to, bytes);
  return copy_runs(data, offset, to, bytes,
                   [&](std::uint64_t place, std::span<const iovec> runs) { return copy.write(place, runs); });
}

Status read_scattered(LayoutCursor& data, const fabric::DirectCopy& copy, std::size_t offset, std::uint64_t from,
                      std::size_t bytes) noexcept {
  if (copy.is_here()) {
    data.unpack(offset, reinterpret_cast<const std::byte*>(from), bytes);
    return Status::ok;
  }
  if (!has_long_runs(data)) return read_packed(data, copy, offset, from, bytes);
  return copy_runs(data, offset, from, bytes,
                   [&](std::uint64_t place, std::span<const iovec> runs) { return copy.read(runs, place); });
}

}  // namespace tonari::message
