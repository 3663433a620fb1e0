#include "measure.hpp"

#include "harness/questions.hpp"
#include "wires/ring.hpp"

namespace tonari::bench {

void ask_pingpong(TonariWire& wire, const Options& options, Output& output) { pingpong::run(wire, options, output); }

void ask_pingpong_of_ring(const Options& options) {
  RingWire wire(options.text("bind", "core") == "core");
  Output output(options, wire.rank());
  output.system(wire.system());
  pingpong::run(wire, options, output);
  output.done();
}

}  // namespace tonari::bench
