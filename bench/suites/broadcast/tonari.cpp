#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_broadcast(TonariWire& wire, const Options& options, Output& output) { broadcast::run(wire, options, output); }

}  // namespace tonari::bench
