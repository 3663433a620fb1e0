#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_barrier(TonariWire& wire, const Options& options, Output& output) { barrier::run(wire, options, output); }

}  // namespace tonari::bench
