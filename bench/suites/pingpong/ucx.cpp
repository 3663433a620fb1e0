// Question: that of measure.hpp, for UCX, by its own measurement.
// Method:   ucx_perftest's ucp_am_lat: active messages, processed in the order of arrival, always in the same buffers,
//           made by UCX. Nothing is matched or ordered, so this is less work. One run is one sample, the median of its
//           round trips.
// Output:   as measure.hpp; case "warm".

#include "harness/placement.hpp"
#include "harness/worker.hpp"
#include "wires/ucx_perftest.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace tonari::bench::ucx {

/// Returns the number of round trips in the budget, if each takes 5 us, and transfers 5 GB/s.
double round_trips_of(std::size_t bytes, double budget_us) {
  return std::floor(std::clamp(budget_us / (5 + static_cast<double>(bytes) / 2500), 100.0, 1e6));
}

void run(const Options& options) {
  const bool bind = options.text("bind", "core") == "core";
  const double budget_us = 20 * options.number("budget-us", 10000);  // its start takes longer than that
  const std::string over = transports_of(options);
  Output output(options, 0);
  output.system("ucx_perftest-" + version());
  output.parameter("transports", over);
  for (const auto bytes : options.sizes("sizes", "8")) {
    const auto figures =
        run_perftest({"-t", "ucp_am_lat", "-s", std::to_string(bytes)}, round_trips_of(bytes, budget_us), bind, over);
    output.samples({"warm", "latency", "us", "bytes"}, static_cast<double>(bytes), {figures.latency_median_us});
  }
  output.done();
}

}  // namespace tonari::bench::ucx

int main(int argc, char** argv) { return tonari::bench::ucx::run_worker(argc, argv, tonari::bench::ucx::run); }
