#include "measure.hpp"

#include "harness/registry.hpp"
#include "tonari_memory.hpp"
#include "wires/tonari.hpp"

namespace tonari::bench::splash_fft {

namespace {

void run_worker(const Options& options) {
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, wire.rank());
  output.system(wire.system());
  run(wire, options, output, [&](std::size_t bytes) { return TonariMemory(job, bytes); });
  output.done();
}

const Measurement of_tonari("splash_fft", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::splash_fft
