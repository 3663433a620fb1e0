#include "measure.hpp"

#include "harness/questions.hpp"

namespace tonari::bench {

void ask_queue_depth(const Options& options) {
  Job job;
  Communicator communicator(job);
  Output output(options, communicator.rank());
  output.system("tonari");
  queue_depth::run(job, communicator, options, output);
  output.done();
}

}  // namespace tonari::bench
