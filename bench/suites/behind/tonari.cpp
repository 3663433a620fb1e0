#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_behind(TonariWire& wire, const Options& options, Output& output) { behind::run(wire, options, output); }

}  // namespace tonari::bench
