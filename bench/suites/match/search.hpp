#pragma once

// Question: what does it cost to find a message behind `depth` others, for several layouts of envelopes?
// Method:   one process, the search alone: nothing arrives.
//             lhs      one 64-byte head per message, dense, in order of arrival. The envelope is at its beginning,
//                      with a payload of up to 48 bytes in the same cache line (Limited-length Head Separation, the
//                      design of the paper). The head of a longer payload has its address in bulk memory.
//             lhs-128  the same with 128-byte heads, which have up to 112 bytes of payload.
//             lhs-cut  64-byte heads that also have the first 40 bytes of a longer payload.
//             no-lhs   16-byte envelopes, each followed by its payload, in one large common buffer. The length in an
//                      envelope gives the position of the next.
//             alpu     the oldest 256 envelopes are in cells, as in an associative unit; the others are searched as in
//                      no-lhs. Software has no such unit: vector instructions compare all 256 cells, without a branch.
//                      So the time of the cells is constant, but longer than that of hardware.
//           Each envelope is compared, oldest first: one compare of 8 bytes. Batches of about 20 us. unexpected-cold
//           empties the caches before each search, whose time then includes reading the clock once. copied and
//           copied-cold are the same, and the message found is copied to memory of the caller.
// Output:   as measure.hpp

#include "measure.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::match {

/// The key of the search: communicator, source and tag in the first word.
struct Envelope {
  std::uint64_t match;
  std::uint64_t bytes;
};
static_assert(sizeof(Envelope) == 16);

/// Where a long payload is: in the head behind the envelope.
struct Pointer {
  const std::byte* bulk;
};

//   0           16                               64, or 128
//   +-----------+--------------------------------+
//   | envelope  | payload, or its address        |
//   +-----------+--------------------------------+
//
// With a cut, the address is followed by the first bytes of the payload.
template <std::size_t entry_bytes, bool cut>
class Heads {
 public:
  Heads(std::size_t messages, std::size_t payload, bool copies)
      : memory_(messages * entry_bytes), bulk_(copies && payload > room ? messages * padded(payload) : 0) {}

  /// `payload` is empty if nothing will be copied.
  void add(const Envelope& envelope, std::span<const std::byte> payload) noexcept {
    std::byte* const head = &memory_.bytes()[entry_bytes * count_++];
    std::memcpy(head, &envelope, sizeof envelope);
    std::byte* const body = head + sizeof envelope;
    if (payload.size() <= room) {
      std::ranges::copy(payload, body);
      return;
    }
    const Pointer pointer{&bulk_.bytes()[end_]};
    std::memcpy(body, &pointer, sizeof pointer);
    std::ranges::copy(payload.first(front), body + sizeof pointer);
    std::ranges::copy(payload.subspan(front), &bulk_.bytes()[end_]);
    end_ += padded(payload.size() - front);
  }

  /// Returns the number of envelopes before the first match.
  [[nodiscard, gnu::noinline]] std::size_t find(std::uint64_t match) const noexcept {
    const std::byte* at = memory_.bytes().data();
    for (std::size_t i = 0; i < count_; ++i, at += entry_bytes) {
      if (match_at(at) == match) return i;
    }
    return count_;
  }

  /// Copies the payload of a message that find() returned.
  void copy(std::size_t message, std::span<std::byte> to) const noexcept {
    const std::byte* const body = &memory_.bytes()[entry_bytes * message] + sizeof(Envelope);
    if (to.size() <= room) {
      std::memcpy(to.data(), body, to.size());
      return;
    }
    Pointer pointer;
    std::memcpy(&pointer, body, sizeof pointer);
    std::memcpy(to.data(), body + sizeof pointer, front);
    std::memcpy(to.data() + front, pointer.bulk, to.size() - front);
  }

 private:
  static constexpr std::size_t room = entry_bytes - sizeof(Envelope);
  static constexpr std::size_t front = cut ? room - sizeof(Pointer) : 0;  // bytes of a long payload in its head

  static std::size_t padded(std::size_t bytes) noexcept { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }
  static std::uint64_t match_at(const std::byte* at) noexcept {
    std::uint64_t match = 0;
    std::memcpy(&match, at, sizeof match);
    return match;
  }

  Memory memory_;
  Memory bulk_;
  std::size_t count_ = 0;
  std::size_t end_ = 0;  // of bulk_
};

struct Heads64 : Heads<64, false> {
  static constexpr const char* name = "lhs";
  using Heads::Heads;
};
struct Heads128 : Heads<128, false> {
  static constexpr const char* name = "lhs-128";
  using Heads::Heads;
};
struct HeadsCut : Heads<64, true> {
  static constexpr const char* name = "lhs-cut";
  using Heads::Heads;
};

//   | envelope | payload | envelope | payload | ...    each envelope at a multiple of 16
class CommonBuffer {
 public:
  static constexpr const char* name = "no-lhs";

  CommonBuffer(std::size_t messages, std::size_t payload, bool /*copies*/)
      : memory_(messages * (sizeof(Envelope) + padded(payload))) {}

  void add(const Envelope& envelope, std::span<const std::byte> payload) noexcept {
    std::memcpy(&memory_.bytes()[end_], &envelope, sizeof envelope);
    std::ranges::copy(payload, &memory_.bytes()[end_ + sizeof envelope]);
    end_ += sizeof envelope + padded(envelope.bytes);
  }

  [[nodiscard, gnu::noinline]] std::size_t find(std::uint64_t match) const noexcept {
    const std::byte* at = memory_.bytes().data();
    const std::byte* const end = at + end_;
    std::size_t count = 0;
    for (; at != end; ++count) {
      Envelope envelope;
      std::memcpy(&envelope, at, sizeof envelope);
      if (envelope.match == match) break;
      at += sizeof envelope + padded(envelope.bytes);
    }
    found_ = at;
    return count;
  }

  /// Copies the payload of the message that find() returned last.
  void copy(std::size_t, std::span<std::byte> to) const noexcept {
    std::memcpy(to.data(), found_ + sizeof(Envelope), to.size());
  }

 private:
  static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

  Memory memory_;
  std::size_t end_ = 0;
  mutable const std::byte* found_ = nullptr;
};

/// Cells that are compared at once, and a common buffer for the envelopes that find no free cell.
class Cells {
 public:
  static constexpr const char* name = "alpu";

  Cells(std::size_t messages, std::size_t payload, bool copies)
      : rest_(messages > cells ? messages - cells : 0, payload, copies) {
    matches_.fill(~std::uint64_t{0});
    for (std::size_t i = 0; i < cells; ++i) numbers_[i] = i;
  }

  void add(const Envelope& envelope, std::span<const std::byte> payload) noexcept {
    if (count_ < cells) {
      matches_[count_] = envelope.match;
    } else {
      rest_.add(envelope, payload);
    }
    ++count_;
  }

  [[nodiscard, gnu::noinline]] std::size_t find(std::uint64_t match) const noexcept {
    const std::size_t found = find_in_cells(match);
    return found < cells || count_ <= cells ? found : cells + rest_.find(match);
  }

 private:
  static constexpr std::size_t cells = 256;
  static constexpr std::size_t lanes = 2;
  typedef std::uint64_t Lanes __attribute__((vector_size(lanes * sizeof(std::uint64_t))));  // compares lane by lane

  /// Compares all cells, whatever is found. Returns the oldest cell that matches, or the number of cells.
  [[nodiscard]] std::size_t find_in_cells(std::uint64_t match) const noexcept {
    const Lanes wanted = Lanes{} + match;
    Lanes oldest = Lanes{} + cells;
    for (std::size_t i = cells; i > 0;) {  // from the youngest, so that the oldest remains
      i -= lanes;
      Lanes cell;
      Lanes number;
      std::memcpy(&cell, &matches_[i], sizeof cell);
      std::memcpy(&number, &numbers_[i], sizeof number);
      const auto equal = reinterpret_cast<Lanes>(cell == wanted);
      oldest = (equal & number) | (~equal & oldest);
    }
    return std::min(oldest[0], oldest[1]);
  }

  alignas(line_bytes) std::array<std::uint64_t, cells> matches_;
  alignas(line_bytes) std::array<std::uint64_t, cells> numbers_;
  std::size_t count_ = 0;
  CommonBuffer rest_;
};

/// A queue of `depth` messages, followed by the one to find.
template <class Queue>
class Search {
 public:
  Search(std::size_t depth, std::size_t payload, bool copies)
      : depth_(depth), sent_(copies ? payload : 0), received_(sent_.size()), queue_(depth + 1, payload, copies) {
    fill_pattern(sent_, 5);
    for (std::size_t i = 0; i < depth; ++i) queue_.add({tag_queued + i, payload}, sent_);
    fill_pattern(sent_, 6);
    queue_.add({tag_probe, payload}, sent_);
  }

  /// Returns the ns per search.
  double time_ns(std::size_t searches) const {
    return time_ns(searches, [](std::size_t) {});
  }
  /// Returns the ns per search and copy.
  double time_with_copy_ns(std::size_t searches) {
    std::ranges::fill(received_, std::byte{0});
    const double ns = time_ns(searches, [&](std::size_t found) { queue_.copy(found, received_); });
    require(received_ == sent_, "a search copied a wrong message");
    return ns;
  }

 private:
  template <class Then>
  double time_ns(std::size_t searches, Then then) const {
    std::size_t all = 0;
    const auto start = monotonic_ns();
    for (std::size_t i = 0; i < searches; ++i) {
      const auto found = queue_.find(tag_probe);
      then(found);
      all += found;
      asm volatile("" : : : "memory");  // the next search must not reuse this result
    }
    const auto end = monotonic_ns();
    require(all == searches * depth_, "a search found a wrong message");
    return static_cast<double>(end - start) / static_cast<double>(searches);
  }

  std::size_t depth_;
  std::vector<std::byte> sent_;
  std::vector<std::byte> received_;
  Queue queue_;
};

/// Returns the samples of a case: warm in batches, cold one by one. `time_ns(searches)` measures.
template <class Time>
std::vector<double> search_samples(const Task& task, const Pools& pools, bool cold, Time time_ns) {
  std::vector<double> samples;
  for (int i = 0; cold && i < task.colds; ++i) {
    pools.empty_caches();
    samples.push_back(time_ns(1));
  }
  if (cold) return samples;
  const double first_ns = std::max(1.0, time_ns(1));
  const auto searches = static_cast<std::size_t>(std::clamp(round_trips::batch_us * 1000 / first_ns, 1.0, 4096.0));
  time_ns(searches);
  const double wanted = std::clamp(task.budget_us * 1000 / (first_ns * static_cast<double>(searches)), 3.0, 300.0);
  while (static_cast<double>(samples.size()) < wanted) samples.push_back(time_ns(searches));
  return samples;
}

template <class Queue>
concept Copies = requires(const Queue& queue, std::size_t message, std::span<std::byte> to) {
  queue.copy(message, to);
};

template <class Queue>
void run_search(const Options& options) {
  const Task task(options);
  Output output(options, 0);
  output.system(Queue::name);
  const Pools pools(0, task.asks("unexpected-cold") || task.asks("copied-cold"));
  for (const auto payload : task.payloads) {
    for (const auto& name : task.cases) {
      const bool copies = name.starts_with("copied");
      if (!copies && !name.starts_with("unexpected")) continue;
      const bool cold = name.ends_with("cold");
      for (const auto depth : task.depths) {
        Search<Queue> search(depth, payload, copies);
        const auto samples_ns = search_samples(task, pools, cold, [&](std::size_t searches) {
          if constexpr (Copies<Queue>) {
            if (copies) return search.time_with_copy_ns(searches);
          }
          return search.time_ns(searches);
        });
        output.samples({label_of(name, payload), "latency", "ns", "depth"}, static_cast<double>(depth), samples_ns);
      }
    }
  }
  output.done();
}

}  // namespace tonari::bench::match
