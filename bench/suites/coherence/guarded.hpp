#pragma once

#include "harness/clocks.hpp"
#include "harness/worker.hpp"
#include "wires/tonari.hpp"

#include "base/clock.hpp"
#include "share/share_runtime.hpp"

#include <tonari/guarded.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The cases with guarded data; measure.hpp describes them.
namespace tonari::bench::coherence {

/// Guarded data; every byte is the number of the last write, modulo 256.
using Numbered = guarded_span<std::uint8_t>;

inline constexpr std::array<std::pair<Mover, const char*>, 3> movers{
    {{Mover::owner_puts, "owner-puts"}, {Mover::asker_asks, "asker-asks"}, {Mover::asker_gets, "asker-gets"}}};

/// Throws if the lock was not acquired, or if the data is not that of write `number`.
template <class T>
void require_number(const GuardedAccess<T>& access, std::uint8_t number) {
  if (!access) throw std::runtime_error(std::string(explain(access.status())));
  if (access[0] != number || access[access.size() - 1] != number) {
    throw std::runtime_error("coherence: guarded data differ from the last write");
  }
}

/// Returns the times that rank 0 waits for ownership and data after each write of rank 1, in us. Rank 1 waits in the
/// library.
inline std::vector<double> hand_over(Job& job, TonariWire& wire, Numbered& data, int turns) {
  constexpr int tag_turn = 61;
  const int other = 1 - job.rank().value();
  std::vector<double> samples;
  for (int turn = 0; turn < turns; ++turn) {
    if (turn % 2 != job.rank()) continue;
    if (turn != 0) wire.receive({}, other, tag_turn);
    const auto start = monotonic_ns();
    auto access = data.write();
    samples.push_back(static_cast<double>(monotonic_ns() - start) / 1000);
    require_number(access, static_cast<std::uint8_t>(turn));
    std::ranges::fill(access, static_cast<std::uint8_t>(turn + 1));
    (void)access.release();
    if (turn + 1 != turns) wire.send({}, other, tag_turn);
  }
  return {samples.begin() + 1, samples.end()};  // at the first turn the home owns the data itself
}

inline void measure_guarded_handover(Job& job, TonariWire& wire, const std::vector<std::size_t>& sizes, int turns,
                                     Output& output) {
  for (const auto& [mover, name] : movers) {
    for (const std::size_t bytes : sizes) {
      Numbered data(job, bytes, {.mover = mover});
      wire.barrier();
      if (job.rank() < 2) {
        const auto samples = hand_over(job, wire, data, turns);
        output.samples({std::string("guarded-handover ") + name, "latency", "us", "bytes"}, static_cast<double>(bytes),
                       samples);
      }
      wire.barrier();
    }
  }
}

/// The times of a write on rank 0.
struct Write {
  std::uint64_t called_ns;
  std::uint64_t entered_ns;  // no reader has a copy any more
  std::uint64_t unlock_ns;
};

/// The times of the same write on a reader, by its own clock. Sent in this layout.
struct Seen {
  std::uint64_t stopped_ns;  // it requested the data; its copy was invalid
  std::uint64_t updated_ns;
};

/// The times of many writes in us, one sample each.
struct WriteTimes {
  std::vector<double> locked;  // until the writer holds the lock
  std::vector<double> first_stopped;
  std::vector<double> last_stopped;
  std::vector<double> first_updated;
  std::vector<double> last_updated;

  void add(const Write& write, const std::vector<Seen>& readers, const Clocks& clocks) {
    const auto called = static_cast<double>(write.called_ns);
    locked.push_back((static_cast<double>(write.entered_ns) - called) / 1000);
    add(first_stopped, last_stopped, readers, &Seen::stopped_ns, called, clocks);
    add(first_updated, last_updated, readers, &Seen::updated_ns, static_cast<double>(write.unlock_ns), clocks);
  }

 private:
  static void add(std::vector<double>& first, std::vector<double>& last, const std::vector<Seen>& readers,
                  std::uint64_t Seen::*event, double since_ns, const Clocks& clocks) {
    std::vector<double> us;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      us.push_back((clocks.at_rank_0(static_cast<int>(i) + 1, readers[i].*event) - since_ns) / 1000);
    }
    first.push_back(std::ranges::min(us));
    last.push_back(std::ranges::max(us));
  }
};

/// Data of rank 0, which writes them again and again; all other ranks read them.
class WrittenAndRead {
 public:
  WrittenAndRead(Job& job, TonariWire& wire, std::size_t bytes, const GuardedOptions& options)
      : wire_(wire), data_(job, bytes, options), crowded_(job.size() > ::sysconf(_SC_NPROCESSORS_ONLN)) {}

  /// Measures this many writes except the first, while all others read continuously. Rank 0 gets the times. Every rank
  /// calls it, once; the same holds for measure_reads().
  WriteTimes measure_writes(int writes, const Clocks& clocks) {
    if (wire_.rank() != 0) {
      read_on(writes);
      return {};
    }
    WriteTimes times;
    (void)gather<Seen>();  // before the first write
    for (int i = 1; i <= writes; ++i) {
      const Write write = this->write(static_cast<std::uint8_t>(i));
      const auto seen = gather<Seen>();
      if (i != 1) times.add(write, seen, clocks);
    }
    tell_readers();
    return times;
  }

  /// Returns, per write, the shortest and the longest time of the next read by the others, who read at the same time,
  /// in us.
  std::pair<std::vector<double>, std::vector<double>> measure_reads(int writes) {
    std::vector<double> shortest;
    std::vector<double> longest;
    for (int i = 1; i <= writes; ++i) {
      if (wire_.rank() != 0) {
        wire_.receive({}, 0, tag_go_on);
        wire_.send(bytes_of(read_us(static_cast<std::uint8_t>(i))), 0, tag_answer);
        continue;
      }
      (void)write(static_cast<std::uint8_t>(i));
      tell_readers();
      const auto us = gather<double>();
      if (i == 1) continue;
      shortest.push_back(std::ranges::min(us));
      longest.push_back(std::ranges::max(us));
    }
    return {shortest, longest};
  }

 private:
  static constexpr int tag_answer = 62;
  static constexpr int tag_go_on = 63;

  Write write(std::uint8_t number) {
    Write times{};
    times.called_ns = monotonic_ns();
    auto access = data_.write();
    times.entered_ns = monotonic_ns();
    require_number(access, static_cast<std::uint8_t>(number - 1));
    std::ranges::fill(access, number);
    times.unlock_ns = monotonic_ns();
    (void)access.release();
    return times;
  }
  void tell_readers() {
    for (int rank = 1; rank < wire_.size(); ++rank) wire_.send({}, rank, tag_go_on);
  }
  template <class Answer>
  std::vector<Answer> gather() {
    std::vector<Answer> answers(static_cast<std::size_t>(wire_.size()) - 1);
    for (std::size_t i = 0; i < answers.size(); ++i) {
      wire_.receive(bytes_of(answers[i]), static_cast<int>(i) + 1, tag_answer);
    }
    return answers;
  }

  double read_us(std::uint8_t number) {
    const auto start = monotonic_ns();
    const auto access = data_.read();
    const auto end = monotonic_ns();
    require_number(access, number);
    return static_cast<double>(end - start) / 1000;
  }
  void read_on(int writes) {
    auto over = wire_.start_receive({}, 0, tag_go_on);
    for (int i = 0; i <= writes; ++i) {
      const Seen seen = read_until(static_cast<std::uint8_t>(i), over);
      wire_.send(bytes_of(seen), 0, tag_answer);
    }
    wire_.wait(over);
  }
  Seen read_until(std::uint8_t number, TonariWire::Request& over) {
    for (;;) {
      const auto called_ns = monotonic_ns();
      {
        const auto access = data_.read();
        if (access && access[0] == number) {
          require_number(access, number);
          return {called_ns, monotonic_ns()};
        }
        require_number(access, static_cast<std::uint8_t>(number - 1));
      }
      (void)wire_.test(over);  // makes progress
      if (crowded_) std::this_thread::yield();
    }
  }

  TonariWire& wire_;
  Numbered data_;
  bool crowded_;  // a continuous reader yields its processor between reads
};

/// While it exists, ranks are notified of writes one by one.
class OneByOne {
 public:
  explicit OneByOne(Job& job) : replicas_(share::ShareRuntime::of(job.session()).replicas()) {
    replicas_.set_branches(static_cast<std::size_t>(job.size()));
  }
  OneByOne(OneByOne&&) = delete;
  ~OneByOne() { replicas_.set_branches(share::branches_usual); }

 private:
  share::ReplicaTable& replicas_;
};

/// Parameters of the cases with many readers.
struct ReadersTask {
  std::size_t bytes;
  int writes;
  double readers;
};

inline void tell_first_and_last(const std::string& label, const ReadersTask& task, const std::vector<double>& first,
                                const std::vector<double>& last, Output& output) {
  output.samples({label, "first", "us", "readers"}, task.readers, first);
  output.samples({label, "last", "us", "readers"}, task.readers, last);
}

inline void measure_guarded_reads(Job& job, TonariWire& wire, const ReadersTask& task, Output& output) {
  for (const auto& [mover, name] : movers) {
    WrittenAndRead data(job, wire, task.bytes, {.mover = mover});
    const auto [shortest, longest] = data.measure_reads(task.writes);
    tell_first_and_last(std::string("guarded-read ") + name, task, shortest, longest, output);
  }
}

/// Measures invalidations. No data moves, so the mover does not matter.
inline void measure_invalidations(Job& job, TonariWire& wire, const ReadersTask& task, const std::string& suffix,
                                  const Clocks& clocks, Output& output) {
  WrittenAndRead data(job, wire, task.bytes, {});
  const WriteTimes times = data.measure_writes(task.writes, clocks);
  const std::string label = "invalidate" + suffix;
  tell_first_and_last(label, task, times.first_stopped, times.last_stopped, output);
  output.samples({label, "latency", "us", "readers"}, task.readers, times.locked);
}

inline void measure_updates(Job& job, TonariWire& wire, const ReadersTask& task, const std::string& suffix,
                            const Clocks& clocks, Output& output) {
  for (const auto& [mover, name] : movers) {
    WrittenAndRead data(job, wire, task.bytes, {.on_write = OnWrite::update, .mover = mover});
    const WriteTimes times = data.measure_writes(task.writes, clocks);
    tell_first_and_last(std::string("update ") + name + suffix, task, times.first_updated, times.last_updated, output);
  }
}

/// `measure`: one of the last two.
template <class Measure>
void measure_told(Job& job, TonariWire& wire, const ReadersTask& task, Measure measure, Output& output) {
  const Clocks clocks(wire);
  output.parameter("clock_error_us", clocks.error_us());
  measure(job, wire, task, "", clocks, output);
  const OneByOne telling(job);
  measure(job, wire, task, " one-by-one", clocks, output);
}

}  // namespace tonari::bench::coherence
