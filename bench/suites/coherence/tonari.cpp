#include "measure.hpp"

#include "harness/placement.hpp"
#include "harness/registry.hpp"
#include "wires/tonari.hpp"

namespace tonari::bench::coherence {

namespace {

void run_worker(const Options& options) {
  bind_as_told(options);
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, job.rank().value());
  output.system(wire.system());
  run(job, wire, options, output);
  output.done();
}

const Measurement of_tonari("coherence", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::coherence
