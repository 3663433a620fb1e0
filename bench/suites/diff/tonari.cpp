#include "measure.hpp"

#include "harness/placement.hpp"
#include "harness/registry.hpp"

namespace tonari::bench::diff {

namespace {

void measure_tonari_code(const Options& options) {
  const auto level = options.text("level", "");
  Output output(options, 0);
  output.system(level.empty() ? "tonari" : "tonari-" + level);
  run(ByTonari{level.empty() ? tonari::window::diff_code() : code_of(level)}, options, output, level.empty());
  output.done();
}

template <class System>
void measure_other(const System& system, const char* name, const Options& options) {
  if (options.text("bind", "core") == "core") bind_to_processor(0);
  Output output(options, 0);
  output.system(name);
  run(system, options, output, false);
  output.done();
}

const Measurement of_tonari("diff", "tonari", measure_tonari_code);
const Measurement of_loop("diff", "byte-loop",
                          [](const Options& options) { measure_other(ByLoop{}, "byte-loop", options); });
const Measurement of_memcmp("diff", "memcmp",
                            [](const Options& options) { measure_other(ByMemcmp{}, "memcmp", options); });

}  // namespace

}  // namespace tonari::bench::diff
