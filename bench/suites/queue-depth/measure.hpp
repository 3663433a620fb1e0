#pragma once

// Question: how deep do the queues of receives and of unexpected messages get?
// Method:   after the case, each rank reads its counters of the greatest queue lengths. Cases:
//             all-to-all          `exchanges` all-to-alls of the library, `bytes` from each rank to each, one after the
//                                 other
//             all-to-all-by-hand  the same as in many MPIs: all receives are started, then all sends, to the next rank
//                                 first; then all are waited for
//             sort                the integer sort of NPB (IS), ten iterations: buckets are counted, their sizes
//                                 all-reduced, and keys exchanged by the library's collectives
//             sort-by-hand        the same with the all-to-alls by hand
//             fourier             the pattern of NPB's FT, class S: six time steps, each of which multiplies a grid of
//                                 64^3 complex numbers (more if the ranks do not divide 64), transposes it by one
//                                 all-to-all, and adds up a checksum. Multiplications stand for the transforms
//             fourier-by-hand     the same with the all-to-all by hand
//           All exchanged data is checked each time, the sort as NPB does: the ranks of five keys after every
//           iteration; and at the end that no rank has lower keys than the previous rank, and that no key is lost.
// Output:   unexpected and posted against ranks: the greatest length of each queue of a rank, one sample per rank.
//           Check: wrong items.

#include "harness/worker.hpp"
#include "kernels/integer_sort.hpp"

#include <tonari/tonari.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::queue_depth {

using namespace integer_sort;

inline constexpr int tag_exchange = 41;
inline constexpr int tag_report = 42;

inline void require(Status status) {
  if (status != Status::ok) throw std::runtime_error(std::string(explain(status)));
}

/// All-to-alls as the library has them.
class LibraryExchange {
 public:
  explicit LibraryExchange(Communicator& communicator) noexcept : communicator_(communicator) {}

  void sum(std::vector<std::int64_t>& values) { require(communicator_.all_reduce(values)); }
  template <class T>
  void all_to_all(const std::vector<T>& sent, std::vector<T>& received) {
    require(communicator_.all_to_all(sent, received));
  }
  template <class T>
  void all_to_all_v(const std::vector<T>& sent, const std::vector<std::size_t>& sent_counts, std::vector<T>& received,
                    const std::vector<std::size_t>& received_counts) {
    require(communicator_.all_to_all_v(sent, sent_counts, received, received_counts));
  }

 private:
  Communicator& communicator_;
};

/// All-to-alls of started sends and receives.
class HandExchange {
 public:
  explicit HandExchange(Communicator& communicator) noexcept : communicator_(communicator) {}

  void sum(std::vector<std::int64_t>& values) { require(communicator_.all_reduce(values)); }
  template <class T>
  void all_to_all(const std::vector<T>& sent, std::vector<T>& received) {
    const auto size = static_cast<std::size_t>(communicator_.size());
    const std::vector<std::size_t> counts(size, sent.size() / size);
    all_to_all_v(sent, counts, received, counts);
  }
  template <class T>
  void all_to_all_v(const std::vector<T>& sent, const std::vector<std::size_t>& sent_counts, std::vector<T>& received,
                    const std::vector<std::size_t>& received_counts) {
    const int size = communicator_.size();
    std::vector<Request> requests;
    requests.reserve(2 * static_cast<std::size_t>(size));
    for (int distance = 1; distance < size; ++distance) {
      const int source = (communicator_.rank().value() + size - distance) % size;
      requests.push_back(
          communicator_.start_receive(part(received, received_counts, source), Rank{source}, Tag{tag_exchange}));
    }
    for (int distance = 1; distance < size; ++distance) {
      const int to = (communicator_.rank().value() + distance) % size;
      requests.push_back(communicator_.start_send(part(sent, sent_counts, to), Rank{to}, Tag{tag_exchange}));
    }
    std::ranges::copy(part(sent, sent_counts, communicator_.rank().value()),
                      part(received, received_counts, communicator_.rank().value()).begin());
    require(wait_all(requests));
  }

 private:
  /// Returns one rank's part of the data that all ranks send to this one, or receive from it.
  template <class Values>
  static auto part(Values& all, const std::vector<std::size_t>& counts, int rank) {
    const auto end = counts.begin() + rank;
    return std::span(all).subspan(std::accumulate(counts.begin(), end, std::size_t{0}), *end);
  }

  Communicator& communicator_;
};

/// The result of a rank. Sent in this layout.
struct Found {
  double unexpected = 0;
  double posted = 0;
  double wrong = 0;  // exchanged items with wrong values
  Sorted sorted{};
};

/// All-to-alls one after the other.
template <class Exchange>
Found run_all_to_all(Exchange exchange, const Communicator& communicator, const Options& options) {
  const auto size = static_cast<std::size_t>(communicator.size());
  const auto me = communicator.rank().index();
  const auto bytes = static_cast<std::size_t>(options.number("bytes", 8));
  const auto exchanges = static_cast<std::size_t>(options.number("exchanges", 100));
  const auto value = [](std::size_t from, std::size_t to, std::size_t round) {
    return static_cast<std::uint8_t>(from * 131 + to * 17 + round);
  };
  std::vector<std::uint8_t> sent(size * bytes);
  std::vector<std::uint8_t> received(size * bytes);
  Found found;
  for (std::size_t round = 0; round < exchanges; ++round) {
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = value(me, i / bytes, round);
    exchange.all_to_all(sent, received);
    for (std::size_t i = 0; i < received.size(); ++i) found.wrong += received[i] == value(i / bytes, me, round) ? 0 : 1;
  }
  return found;
}

/// The grid of run_fourier(): cubic, dealt in planes. Every element is known, so that each rank can check what it
/// receives.
class Grid {
 public:
  explicit Grid(std::size_t ranks) noexcept : planes_((edge_min + ranks - 1) / ranks), edge_(planes_ * ranks) {}

  [[nodiscard]] std::size_t planes() const noexcept { return planes_; }  // per rank
  [[nodiscard]] std::size_t edge() const noexcept { return edge_; }
  [[nodiscard]] std::complex<double> element(std::size_t x, std::size_t y, std::size_t z, int step) const noexcept {
    const auto index = static_cast<double>((z * edge_ + y) * edge_ + x);
    return std::complex<double>(index, 1.0) * std::polar(1.0, 0.1 * step);
  }

 private:
  static constexpr std::size_t edge_min = 64;

  std::size_t planes_;
  std::size_t edge_;
};

/// The communication of NPB's FT: each time step transposes the grid.
template <class Exchange>
Found run_fourier(Exchange exchange, const Communicator& communicator) {
  constexpr int steps = 6;
  const auto size = static_cast<std::size_t>(communicator.size());
  const auto me = communicator.rank().index();
  const Grid grid(size);
  const auto planes = grid.planes();
  std::vector<std::complex<double>> sent(planes * grid.edge() * grid.edge());
  std::vector<std::complex<double>> received(sent.size());
  Found found;
  for (int step = 1; step <= steps; ++step) {
    // The part for rank `to` has its x, all y, and this rank's z.
    auto next = sent.begin();
    for (std::size_t x = 0; x < grid.edge(); ++x) {
      for (std::size_t y = 0; y < grid.edge(); ++y) {
        for (std::size_t z = 0; z < planes; ++z) *next++ = grid.element(x, y, me * planes + z, step);
      }
    }
    exchange.all_to_all(sent, received);
    std::vector<std::int64_t> right{0};
    auto arrived = received.begin();
    for (std::size_t from = 0; from < size; ++from) {
      for (std::size_t x = me * planes; x < (me + 1) * planes; ++x) {
        for (std::size_t y = 0; y < grid.edge(); ++y) {
          for (std::size_t z = 0; z < planes; ++z) {
            right[0] += *arrived++ == grid.element(x, y, from * planes + z, step) ? 1 : 0;
          }
        }
      }
    }
    exchange.sum(right);
    found.wrong += static_cast<double>(grid.edge() * grid.edge() * grid.edge()) - static_cast<double>(right[0]);
  }
  return found;
}

template <class Exchange>
Found run_sort(Exchange exchange, const Communicator& communicator, const Options& options) {
  const auto name = options.text("class", "S");
  const auto* const sort = std::ranges::find(sort_classes, name, &SortClass::name);
  if (sort == sort_classes.end()) throw std::invalid_argument("queue-depth: there is no class " + name);
  Sort<Exchange> keys(exchange, *sort, communicator.rank().value(), communicator.size());
  Found found;
  for (int iteration = 1; iteration <= iterations_max; ++iteration) found.wrong += keys.iterate(iteration);
  found.sorted = keys.sorted();
  return found;
}

inline Found run_case(const std::string& name, Communicator& communicator, const Options& options) {
  const LibraryExchange library(communicator);
  const HandExchange by_hand(communicator);
  if (name == "all-to-all") return run_all_to_all(library, communicator, options);
  if (name == "all-to-all-by-hand") return run_all_to_all(by_hand, communicator, options);
  if (name == "sort") return run_sort(library, communicator, options);
  if (name == "fourier") return run_fourier(library, communicator);
  if (name == "fourier-by-hand") return run_fourier(by_hand, communicator);
  if (name == "sort-by-hand") return run_sort(by_hand, communicator, options);
  throw std::invalid_argument("queue-depth: there is no case " + name);
}

inline void report(const std::string& name, const std::vector<Found>& ranks, Output& output) {
  std::vector<double> unexpected;
  std::vector<double> posted;
  std::vector<Sorted> sorted;
  double wrong = 0;
  for (const auto& rank : ranks) {
    unexpected.push_back(rank.unexpected);
    posted.push_back(rank.posted);
    sorted.push_back(rank.sorted);
    wrong += rank.wrong;
  }
  const auto at = static_cast<double>(ranks.size());
  output.samples({name, "unexpected", "messages", "ranks"}, at, unexpected);
  output.samples({name, "posted", "receives", "ranks"}, at, posted);
  output.check({name, "wrong", "items", "ranks"}, at, wrong + (is_sorted(sorted) ? 0 : 1), 1);
}

/// Rank 0 posts the receives for the results before the case, so that the result of a rank that ends early is not
/// unexpected there while the case continues. The counter includes these receives; they are subtracted.
inline void run(Job& job, Communicator& communicator, const Options& options, Output& output) {
  const auto name = options.text("case", "all-to-all");
  std::vector<Found> ranks(static_cast<std::size_t>(communicator.size()));
  std::vector<Request> reports;
  for (int rank = 1; communicator.rank() == 0 && rank < communicator.size(); ++rank) {
    reports.push_back(communicator.start_receive(ranks[static_cast<std::size_t>(rank)], Rank{rank}, Tag{tag_report}));
  }

  Found mine = run_case(name, communicator, options);

  const auto counts = job.statistics();
  mine.unexpected = static_cast<double>(counts.unexpected_max);
  mine.posted = static_cast<double>(counts.posted_max) - static_cast<double>(reports.size());
  if (communicator.rank() != 0) return require(communicator.send(mine, Rank{0}, Tag{tag_report}));
  ranks[0] = mine;
  require(wait_all(reports));
  report(name, ranks, output);
}

}  // namespace tonari::bench::queue_depth
