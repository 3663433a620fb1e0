#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_register(TonariOneSidedWire& wire, const Options& options, Output& output) {
  registration::run(wire, options, output);
}

}  // namespace tonari::bench
