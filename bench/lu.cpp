#include "lu.hpp"

#include "questions.hpp"

namespace tonari::bench {

void ask_lu(TonariWire& wire, const Options& options, Output& output) { lu::run(wire, options, output); }

}  // namespace tonari::bench
