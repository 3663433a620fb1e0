#include "measure.hpp"

#include "harness/registry.hpp"

namespace tonari::bench::queue_depth {

namespace {

void run_worker(const Options& options) {
  Job job;
  Communicator communicator(job);
  Output output(options, communicator.rank().value());
  output.system("tonari");
  run(job, communicator, options, output);
  output.done();
}

const Measurement of_tonari("queue-depth", "tonari", run_worker);

}  // namespace

}  // namespace tonari::bench::queue_depth
