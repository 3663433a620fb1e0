#pragma once

// Question: what does it cost to share memory between hosts: to read and write pages with remote homes, to synchronise,
//           and to keep guarded data current?
// Method:   rank 1 is the home of the pages, has written them, and waits in the library. Rank 0 accesses one word of
//           each page and times that.
//             read-random, read-sequential, read-strided   pages that rank 0 does not have; strided is every 16th
//             write-upgrade        first writes, in random order, to pages that rank 0 has
//             release              after writing this many pages: informs the home and the holders of copies
//             barrier              without writes
//             lock-again           locks and unlocks a mutex that this rank had last
//             lock-handover        two ranks in turn lock a mutex, and add one to a word under it
//           Guarded data (guarded.hpp), with each Mover if data moves:
//             guarded-handover     rank 0 waits to write data that rank 1 wrote last; rank 1 waits in the library
//             invalidate, update   rank 0 writes; all others read continuously, and call the library in between. Timed
//                                  from the call to write until a reader's copy is invalid, or from the unlock until it
//                                  has the new data. Ranks are notified down a tree, and one by one. Readers use their
//                                  own clocks (clocks.hpp)
//             guarded-read         figure 6 of the Fagus paper: after a write by rank 0 all others read at once; each
//                                  times its own call
// Output:   latency in us: against pages accessed, or written before a release; ranks; bytes. For invalidate: until the
//           writer may write, against readers (figure 5 of the paper). first and last in us: over all readers.

#include "guarded.hpp"
#include "harness/batches.hpp"
#include "harness/worker.hpp"
#include "kernels/remote_pages.hpp"
#include "wires/tonari.hpp"

#include "base/clock.hpp"

#include <tonari/share.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::coherence {

inline constexpr std::size_t stride_pages = 16;
inline constexpr double batch_us = 100;

template <class Work>
double time_us(Work work) {
  const auto start = monotonic_ns();
  work();
  return static_cast<double>(monotonic_ns() - start) / 1000;
}

inline std::vector<std::size_t> in_order(std::size_t pages, std::size_t stride) {
  std::vector<std::size_t> order;
  for (std::size_t page = 0; page < pages; page += stride) order.push_back(page);
  return order;
}
inline std::vector<std::size_t> shuffled(std::size_t pages) {
  auto order = in_order(pages, 1);
  std::mt19937_64 random{1};
  std::ranges::shuffle(order, random);
  return order;
}

/// The time per page, in samples of successive pages: most pages of a sequence are present when they are accessed.
inline std::vector<double> read_all(const RemotePages& pages, const std::vector<std::size_t>& order,
                                    std::size_t a_sample) {
  std::vector<double> samples;
  for (std::size_t at = 0; at + a_sample <= order.size(); at += a_sample) {
    const double us = time_us([&] {
      for (std::size_t i = at; i < at + a_sample; ++i) {
        const std::uint64_t found = pages.word(order[i]);
        if (found != order[i] + 1) throw std::runtime_error("coherence: a page has not what its home wrote there");
      }
    });
    samples.push_back(us / static_cast<double>(a_sample));
  }
  return samples;
}

inline void measure_reads(Job& job, const std::string& name, std::size_t pages, Output& output) {
  const RemotePages shared(job, pages);
  const bool random = name == "read-random";
  const auto order = random ? shuffled(pages) : in_order(pages, name == "read-strided" ? stride_pages : 1);
  if (job.rank() == 0) {
    output.samples({name, "latency", "us", "pages"}, static_cast<double>(order.size()),
                   read_all(shared, order, random ? 1 : std::min<std::size_t>(64, order.size() / 4)));
  }
  RemotePages::meet(job);
}

inline void measure_upgrades(Job& job, std::size_t pages, Output& output) {
  const RemotePages shared(job, pages);
  if (job.rank() == 0) {
    const auto order = shuffled(pages);
    (void)read_all(shared, order, 1);
    std::vector<double> samples;
    for (const std::size_t page : order) samples.push_back(time_us([&] { shared.word(page) = 0; }));
    output.samples({"write-upgrade", "latency", "us", "pages"}, static_cast<double>(pages), samples);
  }
  RemotePages::meet(job);
}

inline void measure_releases(Job& job, const std::vector<std::size_t>& sizes, int rounds, Output& output) {
  for (const std::size_t pages : sizes) {
    const RemotePages shared(job, pages);
    std::vector<double> samples;
    for (int round = 0; job.rank() == 0 && round < rounds; ++round) {
      for (std::size_t page = 0; page < pages; ++page) shared.word(page) = static_cast<std::uint64_t>(round);
      samples.push_back(time_us([&] { (void)share::release(job); }));
    }
    if (job.rank() == 0) output.samples({"release", "latency", "us", "pages"}, static_cast<double>(pages), samples);
    RemotePages::meet(job);
  }
}

inline void measure_barriers(Job& job, TonariWire& wire, double budget_us, Output& output) {
  const auto samples = time_together_us(wire, batch_us, budget_us, [&](std::uint32_t operations) {
    for (std::uint32_t i = 0; i < operations; ++i) RemotePages::meet(job);
  });
  output.samples({"barrier", "latency", "us", "ranks"}, job.size(), samples);
}

inline void measure_lock_again(Job& job, double budget_us, Output& output) {
  share::mutex mutex(job);
  if (job.rank() == 0) {
    const auto turn_us = [&](std::uint32_t operations) {
      return time_us([&] {
               for (std::uint32_t i = 0; i < operations; ++i) {
                 const auto lock = mutex.lock();
                 if (!lock) throw std::runtime_error("a mutex could not be locked: a rank died");
               }
             }) /
             operations;
    };
    const auto fitting = fit_batches(batch_us, budget_us, turn_us);
    std::vector<double> samples;
    for (std::uint64_t i = 0; i < fitting.batches; ++i) samples.push_back(turn_us(fitting.operations));
    output.samples({"lock-again", "latency", "us", "ranks"}, job.size(), samples);
  }
  RemotePages::meet(job);
}

inline void measure_handover(Job& job, int turns, Output& output) {
  const RemotePages shared(job, 1);
  share::mutex mutex(job);
  std::vector<double> samples;
  RemotePages::meet(job);
  const std::uint64_t begin = shared.word(0);
  const std::uint64_t end = begin + 2 * static_cast<std::uint64_t>(turns);
  RemotePages::meet(job);
  const auto self = static_cast<std::uint64_t>(job.rank().value());
  std::uint64_t since_ns = monotonic_ns();
  for (bool over = job.rank() > 1; !over;) {
    const auto lock = mutex.lock();
    if (!lock) throw std::runtime_error("a mutex could not be locked: a rank died");
    const std::uint64_t count = shared.word(0);
    over = count >= end;
    if (over || (count - begin) % 2 != self) continue;
    shared.word(0) = count + 1;
    const std::uint64_t now_ns = monotonic_ns();
    samples.push_back(static_cast<double>(now_ns - since_ns) / 2000);  // a round trip
    since_ns = now_ns;
  }
  if (job.rank() == 0) output.samples({"lock-handover", "latency", "us", "ranks"}, job.size(), samples);
  RemotePages::meet(job);
}

inline void run(Job& job, TonariWire& wire, const Options& options, Output& output) {
  if (job.size() < 2) throw std::invalid_argument("coherence needs two ranks");
  const auto pages = static_cast<std::size_t>(options.number("pages", 4096));
  const int rounds = static_cast<int>(options.number("rounds", 50));
  const double budget_us = options.number("budget-us", 10000);
  const ReadersTask readers{.bytes = static_cast<std::size_t>(options.number("guarded-bytes", 4096)),
                            .writes = rounds * 2,
                            .readers = static_cast<double>(job.size() - 1)};
  for (const auto& name :
       options.list("cases", "read-random,read-sequential,read-strided,write-upgrade,release,barrier")) {
    if (name.starts_with("read-")) measure_reads(job, name, pages, output);
    if (name == "write-upgrade") measure_upgrades(job, pages, output);
    if (name == "release") measure_releases(job, options.sizes("sizes", "1,8,64,512"), rounds, output);
    if (name == "barrier") measure_barriers(job, wire, budget_us, output);
    if (name == "lock-again") measure_lock_again(job, budget_us, output);
    if (name == "lock-handover") measure_handover(job, rounds * 10, output);
    if (name == "guarded-handover") {
      measure_guarded_handover(job, wire, options.sizes("bytes", "8,256,4096,16384"), rounds * 10, output);
    }
    if (name == "guarded-read") measure_guarded_reads(job, wire, readers, output);
    if (name == "invalidate") measure_told(job, wire, readers, measure_invalidations, output);
    if (name == "update") measure_told(job, wire, readers, measure_updates, output);
  }
}

}  // namespace tonari::bench::coherence
