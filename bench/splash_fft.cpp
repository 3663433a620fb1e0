#include "splash_fft.hpp"

#include "questions.hpp"
#include "tonari_fft_wire.hpp"

namespace tonari::bench {

void ask_splash_fft(const Options& options) {
  Job job;
  Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, wire.rank());
  output.system(wire.system());
  fft::run(wire, options, output, [&](std::size_t bytes) { return fft::TonariMemory(job, bytes); });
  output.done();
}

}  // namespace tonari::bench
