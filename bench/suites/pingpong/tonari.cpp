#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/ring.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::pingpong {

namespace {

void measure_ring(const Options& options) {
  RingWire wire(options.text("bind", "core") == "core");
  Output output(options, wire.rank());
  output.system(wire.system());
  run(wire, options, output);
  output.done();
}

const Measurement of_tonari("pingpong", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });
const Measurement of_ring("pingpong", "ring", measure_ring);

}  // namespace

}  // namespace tonari::bench::pingpong
