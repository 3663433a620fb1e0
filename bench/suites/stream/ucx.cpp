// Question: how many bytes per second does the link carry that transfers the chunks of far memory?
// Method:   ucx_perftest's ucp_put_bw, 2 MiB, four outstanding, one direction, always the same memory, made by UCX. One
//           run is one sample.
// Output:   wire in GB/s, case "link", the reference for the traffic that far.cpp reports for its interface.

#include "harness/worker.hpp"
#include "wires/ucx_perftest.hpp"

namespace tonari::bench::ucx {

void run(const Options& options) {
  const double puts = 500 * options.number("budget-s", 10);
  Output output(options, 0);
  output.system("ucx_perftest-" + version());
  output.parameter("transports", transports_of(options));
  const auto figures =
      run_perftest({"-t", "ucp_put_bw", "-s", "2097152", "-O", "4"}, puts, false, transports_of(options));
  output.samples({"link", "wire", "GB/s", "local %"}, 100, {figures.mebibytes_a_second * 1.048576e-3});
  output.done();
}

}  // namespace tonari::bench::ucx

int main(int argc, char** argv) { return tonari::bench::ucx::run_worker(argc, argv, tonari::bench::ucx::run); }
