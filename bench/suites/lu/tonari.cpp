#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_lu(TonariWire& wire, const Options& options, Output& output) { lu::run(wire, options, output); }

}  // namespace tonari::bench
