// Question: that of measure.hpp, for UCX, by its own measurement.
// Method:   ucx_perftest's ucp_fadd and ucp_cswap, 8 bytes, one outstanding; memory that UCX made. Its compare-and-swap
//           need not succeed. "computing" is its option -o, with which the owner makes no progress. One run is one
//           sample.
// Output:   as measure.hpp; cases "fetch-add ours waiting" and the like.

#include "harness/placement.hpp"
#include "harness/worker.hpp"
#include "wires/ucx_perftest.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace tonari::bench::ucx {

constexpr double operation_us = 0.1;

void run(const Options& options) {
  const bool bind = options.text("bind", "core") == "core";
  const double operations = std::floor(5 * options.number("budget-us", 10000) / operation_us);
  Output output(options, 0);
  output.system("ucx_perftest-" + version());
  output.parameter("transports", transports);
  for (const auto& owner : options.list("owner", "waiting,computing")) {
    for (const auto& operation : options.list("operations", "fetch-add,compare-and-swap")) {
      std::vector<std::string> test{"-t", operation == "fetch-add" ? "ucp_fadd" : "ucp_cswap", "-s", "8", "-O", "1"};
      if (owner == "computing") test.emplace_back("-o");
      const auto figures = run_perftest(test, operations, bind);
      output.samples({operation + " ours " + owner, "latency", "us", "bytes"}, 8, {figures.latency_us});
    }
  }
  output.done();
}

}  // namespace tonari::bench::ucx

int main(int argc, char** argv) { return tonari::bench::ucx::run_worker(argc, argv, tonari::bench::ucx::run); }
