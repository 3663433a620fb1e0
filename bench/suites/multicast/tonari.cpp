#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_multicast(TonariOneSidedWire& wire, const Options& options, Output& output) {
  multicast::run(wire, options, output);
}

}  // namespace tonari::bench
