#include "measure.hpp"

#include "harness/questions.hpp"
#include "tonari_memory.hpp"

namespace tonari::bench {

void ask_splash_fft(const Options& options) {
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, wire.rank());
  output.system(wire.system());
  splash_fft::run(wire, options, output, [&](std::size_t bytes) { return splash_fft::TonariMemory(job, bytes); });
  output.done();
}

}  // namespace tonari::bench
