#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_alltoall(TonariWire& wire, const Options& options, Output& output) { alltoall::run(wire, options, output); }

}  // namespace tonari::bench
