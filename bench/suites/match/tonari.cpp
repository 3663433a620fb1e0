#include "measure.hpp"

#include "harness/questions.hpp"
#include "search.hpp"

namespace tonari::bench {

void ask_match(TonariWire& wire, const Options& options, Output& output) { match::run(wire, options, output); }

void ask_match_of_heads(const Options& options) { match::run_search<match::Heads>(options); }

void ask_match_of_common_buffer(const Options& options) { match::run_search<match::CommonBuffer>(options); }

}  // namespace tonari::bench
