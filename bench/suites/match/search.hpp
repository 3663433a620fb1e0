#pragma once

// Question: what does it cost to find a message behind `depth` others, for two layouts of envelopes?
// Method:   one process, the search alone: nothing arrives, nothing is copied.
//             lhs     one 64-byte head per message, dense, in order of arrival. The envelope is at its beginning, and a
//                     short payload is in the same cache line (Limited-length Head Separation, the design of the paper)
//             no-lhs  16-byte envelopes, each followed by its payload, in one large common buffer. The length in an
//                     envelope gives the position of the next
//           Each envelope is compared, oldest first: one compare of 8 bytes. Batches of about 20 us. unexpected-cold
//           empties the caches before each search, whose time then includes reading the clock once.
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

//   0           16                               64
//   +-----------+--------------------------------+
//   | envelope  | payload, or its address        |
//   +-----------+--------------------------------+
class Heads {
 public:
  static constexpr const char* name = "lhs";

  Heads(std::size_t messages, std::size_t) : memory_(messages * line_bytes) {}

  void add(const Envelope& envelope) noexcept {
    std::memcpy(&memory_.bytes()[line_bytes * count_++], &envelope, sizeof envelope);
  }

  /// Returns the number of envelopes before the first match.
  [[nodiscard, gnu::noinline]] std::size_t find(std::uint64_t match) const noexcept {
    const std::byte* at = memory_.bytes().data();
    for (std::size_t i = 0; i < count_; ++i, at += line_bytes) {
      if (match_at(at) == match) return i;
    }
    return count_;
  }

 private:
  static std::uint64_t match_at(const std::byte* at) noexcept {
    std::uint64_t match = 0;
    std::memcpy(&match, at, sizeof match);
    return match;
  }

  Memory memory_;
  std::size_t count_ = 0;
};

//   | envelope | payload | envelope | payload | ...    each envelope at a multiple of 16
class CommonBuffer {
 public:
  static constexpr const char* name = "no-lhs";

  CommonBuffer(std::size_t messages, std::size_t payload) : memory_(messages * (sizeof(Envelope) + padded(payload))) {}

  void add(const Envelope& envelope) noexcept {
    std::memcpy(&memory_.bytes()[end_], &envelope, sizeof envelope);
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
    return count;
  }

 private:
  static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 15) / 16 * 16; }

  Memory memory_;
  std::size_t end_ = 0;
};

/// A queue of `depth` messages, followed by the one to find.
template <class Queue>
class Search {
 public:
  Search(std::size_t depth, std::size_t payload) : depth_(depth), queue_(depth + 1, payload) {
    for (std::size_t i = 0; i < depth; ++i) queue_.add({tag_queued + i, payload});
    queue_.add({tag_probe, payload});
  }

  /// Returns the ns per search.
  double time_ns(std::size_t searches) const {
    std::size_t found = 0;
    const auto start = monotonic_ns();
    for (std::size_t i = 0; i < searches; ++i) {
      found += queue_.find(tag_probe);
      asm volatile("" : : : "memory");  // the next search must not reuse this result
    }
    const auto end = monotonic_ns();
    require(found == searches * depth_, "a search found a wrong message");
    return static_cast<double>(end - start) / static_cast<double>(searches);
  }

 private:
  std::size_t depth_;
  Queue queue_;
};

template <class Queue>
void run_search(const Options& options) {
  const Task task(options);
  Output output(options, 0);
  output.system(Queue::name);
  const Pools pools(0, task.asks("unexpected-cold"));
  for (const auto payload : task.payloads) {
    for (const auto depth : task.depths) {
      const Search<Queue> search(depth, payload);
      const auto report = [&](const char* name, const std::vector<double>& samples_ns) {
        output.samples({label_of(name, payload), "latency", "ns", "depth"}, static_cast<double>(depth), samples_ns);
      };
      if (task.asks("unexpected")) {
        const double first_ns = std::max(1.0, search.time_ns(1));
        const auto searches =
            static_cast<std::size_t>(std::clamp(round_trips::batch_us * 1000 / first_ns, 1.0, 4096.0));
        search.time_ns(searches);
        const double wanted =
            std::clamp(task.budget_us * 1000 / (first_ns * static_cast<double>(searches)), 3.0, 300.0);
        std::vector<double> samples;
        while (static_cast<double>(samples.size()) < wanted) samples.push_back(search.time_ns(searches));
        report("unexpected", samples);
      }
      if (task.asks("unexpected-cold")) {
        std::vector<double> samples;
        for (int i = 0; i < task.colds; ++i) {
          pools.empty_caches();
          samples.push_back(search.time_ns(1));
        }
        report("unexpected-cold", samples);
      }
    }
  }
  output.done();
}

}  // namespace tonari::bench::match
