#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_overlap(TonariWire& wire, const Options& options, Output& output) { overlap::run(wire, options, output); }

}  // namespace tonari::bench
