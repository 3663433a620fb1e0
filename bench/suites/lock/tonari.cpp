#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_lock(TonariOneSidedWire& wire, const Options& options, Output& output) { lock::run(wire, options, output); }

}  // namespace tonari::bench
