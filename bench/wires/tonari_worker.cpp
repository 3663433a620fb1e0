#include "wires/tonari_worker.hpp"

#include "harness/placement.hpp"

namespace tonari::bench {

void measure_tonari(const Options& options, void (*measure)(TonariOneSidedWire&, const Options&, Output&)) {
  bind_as_told(options);
  Job job;
  Communicator communicator(job);
  TonariOneSidedWire wire(job, communicator);
  Output output(options, wire.rank());
  output.system(options.text("name", wire.system()));
  measure(wire, options, output);
  output.done();
}

}  // namespace tonari::bench
