#include "measure.hpp"

#include "harness/placement.hpp"
#include "harness/questions.hpp"

namespace tonari::bench {

namespace {

template <class System>
void ask_alone(const System& system, const char* name, const Options& options) {
  if (options.text("bind", "core") == "core") bind_to_processor(0);
  Output output(options, 0);
  output.system(name);
  diff::run(system, options, output, false);
  output.done();
}

}  // namespace

void ask_diff(const Options& options) {
  const auto level = options.text("level", "");
  Output output(options, 0);
  output.system(level.empty() ? "tonari" : "tonari-" + level);
  diff::run(diff::ByTonari{level.empty() ? window::diff_code() : diff::code_of(level)}, options, output, level.empty());
  output.done();
}

void ask_diff_of_loop(const Options& options) { ask_alone(diff::ByLoop{}, "byte-loop", options); }

void ask_diff_of_memcmp(const Options& options) { ask_alone(diff::ByMemcmp{}, "memcmp", options); }

}  // namespace tonari::bench
