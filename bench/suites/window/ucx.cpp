// Question: that of measure.hpp, for UCX, by its own measurement.
// Method:   ucx_perftest's ucp_put_bw and ucp_get, with one outstanding operation (latency) and with 16 (rate); always
//           the same memory, made by UCX. An operation counts when it is complete at the origin: no flush ensures that
//           a put has arrived, so this is slightly less work. "computing" is its option -o, with which the owner makes
//           no progress. One run is one sample.
// Output:   as measure.hpp; cases "push ours waiting" and the like.

#include "harness/placement.hpp"
#include "harness/worker.hpp"
#include "wires/ucx_perftest.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tonari::bench::ucx {

/// Returns the number of operations in the budget, if each takes 50 ns, and transfers 10 GB/s.
double operations_of(std::size_t bytes, double budget_us) {
  return std::floor(std::clamp(budget_us / (0.05 + static_cast<double>(bytes) / 10'000), 100.0, 1e7));
}

void run(const Options& options) {
  const bool bind = options.text("bind", "core") == "core";
  const double budget_us = 5 * options.number("budget-us", 10000);  // its start takes longer than that
  Output output(options, 0);
  output.system("ucx_perftest-" + version());
  output.parameter("transports", transports);
  for (const auto& owner : options.list("owner", "waiting,computing")) {
    for (const auto& operation : options.list("operations", "push,pull")) {
      const auto label = operation + " ours " + owner;
      for (const auto bytes : options.sizes("sizes", "8")) {
        std::vector<std::string> test{"-t", operation == "push" ? "ucp_put_bw" : "ucp_get", "-s",
                                      std::to_string(bytes)};
        if (owner == "computing") test.emplace_back("-o");
        const auto figures = [&](const char* under_way) {
          auto with = test;
          with.insert(with.end(), {"-O", under_way});
          return run_perftest(with, operations_of(bytes, budget_us), bind);
        };
        const auto at = static_cast<double>(bytes);
        output.samples({label, "latency", "us", "bytes"}, at, {figures("1").latency_us});
        output.samples({label, "rate", "GB/s", "bytes"}, at, {figures("16").mebibytes_a_second * 1.048576e-3});
      }
    }
  }
  output.done();
}

}  // namespace tonari::bench::ucx

int main(int argc, char** argv) { return tonari::bench::ucx::run_worker(argc, argv, tonari::bench::ucx::run); }
