#include "measure.hpp"

#include "harness/questions.hpp"
#include "wires/memory_copy.hpp"

namespace tonari::bench {

namespace {

void ask_bare(BareWire::Copies copies, const Options& options) {
  BareWire wire(copies, options.text("bind", "core") == "core");
  Output output(options, wire.rank());
  output.system(wire.system());
  window::run(wire, options, output);
  output.done();
}

}  // namespace

void ask_window(TonariOneSidedWire& wire, const Options& options, Output& output) {
  window::run(wire, options, output);
}

void ask_window_of_memcpy(const Options& options) { ask_bare(BareWire::Copies::memcpy, options); }
void ask_window_of_process_vm(const Options& options) { ask_bare(BareWire::Copies::process_vm, options); }

}  // namespace tonari::bench
