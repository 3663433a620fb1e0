#pragma once

#include "harness/worker.hpp"
#include "kernels/shared_lines.hpp"
#include "kernels/steps.hpp"
#include "wires/tonari.hpp"

#include <tonari/tonari.hpp>

#include <functional>

namespace tonari::bench {

inline int threads_of(const Options& options) { return static_cast<int>(options.number("threads", 1)); }

#ifdef _OPENMP
inline constexpr bool has_openmp = true;
#else
inline constexpr bool has_openmp = false;
#endif

/// Calls body(thread) in this many OpenMP threads, and waits for all.
template <class Body>
void in_threads(int threads, Body body) {
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1)
#endif
  for (int thread = 0; thread < threads; ++thread) body(thread);
}

inline Sharing sharing_of(const Options& options) {
  return {.named = options.number("named", 0) != 0, .misplaced = options.number("misplaced", 0) != 0};
}

/// The ways to run a program of steps in tonari's worker.
struct StepsWays {
  std::function<void(TonariWire&, const Options&, Output&)> message;
  std::function<void(Job&, TonariWire&, const Options&, Output&)> share;
  std::function<void(Job&, TonariWire&, const Options&, Output&)> guarded{};  // some programs have none
  std::function<void(TonariWire&, const Options&, Output&)> threads;
};

inline void run_steps(const Options& options, const StepsWays& ways) {
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, wire.rank());
  const auto way = options.text("way", "message");
  output.system(way == "openmp" ? "openmp" : wire.system());
  if (way == "message") {
    ways.message(wire, options, output);
  } else if (way == "share" || way == "guarded") {
    output.parameter("processors", processors(gather_places(wire)));
    (way == "share" ? ways.share : ways.guarded)(job, wire, options, output);
  } else if (has_openmp) {
    ways.threads(wire, options, output);
  } else {
    output.parameter("openmp", "the worker was built without it");
  }
  output.done();
}

}  // namespace tonari::bench
