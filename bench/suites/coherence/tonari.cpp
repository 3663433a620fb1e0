#include "measure.hpp"

#include "harness/placement.hpp"
#include "harness/questions.hpp"

namespace tonari::bench {

void ask_coherence(const Options& options) {
  bind_as_told(options);
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, job.rank());
  output.system(wire.system());
  coherence::run(job, wire, options, output);
  output.done();
}

}  // namespace tonari::bench
