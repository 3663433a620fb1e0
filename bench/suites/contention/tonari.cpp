#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_contention(TonariWire& wire, const Options& options, Output& output) {
  contention::run(wire, options, output);
}

}  // namespace tonari::bench
