#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_rate(TonariWire& wire, const Options& options, Output& output) { rate::run(wire, options, output); }

}  // namespace tonari::bench
