// Question: that of measure.hpp, for UCX, by its own measurement.
// Method:   ucx_perftest's tag_bw: 8 bytes, one thread, 64 outstanding sends; two processes on this host, which connect
//           by TCP on 127.0.0.1 and exchange messages through shared memory, or the transports of --transports. It
//           sends no empty message back after 64, and checks no message, so this is slightly less work. One run is one
//           sample. A short first run, which determines the number of messages of a sample, is dropped.
// Output:   as measure.hpp.

#include "harness/placement.hpp"
#include "harness/worker.hpp"
#include "wires/ucx_perftest.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tonari::bench::ucx {

double million_messages_a_second(double messages, bool bind, const std::string& over) {
  return run_perftest({"-t", "tag_bw", "-s", "8", "-O", "64"}, messages, bind, over).messages_a_second / 1e6;
}

constexpr double messages_first = 10'000;
constexpr double messages_max = 10'000'000;
constexpr int samples_a_run = 3;

void run(const Options& options) {
  const bool bind = options.text("bind", "core") == "core";
  Output output(options, 0);
  output.system("ucx_perftest-" + version());
  const std::string over = transports_of(options);
  output.parameter("transports", over);

  const double first = million_messages_a_second(messages_first, bind, over);
  const double messages = std::clamp(first * options.number("budget-us", 20000), messages_first, messages_max);
  output.parameter("messages", std::floor(messages));
  std::vector<double> samples;
  for (int i = 0; i < samples_a_run; ++i) {
    samples.push_back(million_messages_a_second(std::floor(messages), bind, over));
  }
  output.samples({"one communicator", "rate", "M/s", "threads"}, 1, samples);
  output.done();
}

}  // namespace tonari::bench::ucx

int main(int argc, char** argv) { return tonari::bench::ucx::run_worker(argc, argv, tonari::bench::ucx::run); }
