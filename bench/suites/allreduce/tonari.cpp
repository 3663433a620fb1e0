#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_allreduce(TonariWire& wire, const Options& options, Output& output) { allreduce::run(wire, options, output); }

}  // namespace tonari::bench
