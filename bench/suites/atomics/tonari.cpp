#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_atomics(TonariOneSidedWire& wire, const Options& options, Output& output) {
  atomics::run(wire, options, output);
}

}  // namespace tonari::bench
