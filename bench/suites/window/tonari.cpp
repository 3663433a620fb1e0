#include "measure.hpp"

#include "harness/registry.hpp"
#include "wires/memory_copy.hpp"
#include "wires/tonari_worker.hpp"

namespace tonari::bench::window {

namespace {

void measure_copies(BareWire::Copies copies, const Options& options) {
  BareWire wire(copies, options.text("bind", "core") == "core");
  Output output(options, wire.rank());
  output.system(wire.system());
  run(wire, options, output);
  output.done();
}

const Measurement of_tonari("window", "tonari",
                            [](const Options& options) { measure_tonari(options, run<TonariOneSidedWire>); });
const Measurement of_memcpy("window", "memcpy",
                            [](const Options& options) { measure_copies(BareWire::Copies::memcpy, options); });
const Measurement of_process_vm("window", "process-vm",
                                [](const Options& options) { measure_copies(BareWire::Copies::process_vm, options); });

}  // namespace

}  // namespace tonari::bench::window
