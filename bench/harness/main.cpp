// bench-worker QUESTION --key=value...: `tonari bench` starts it. See worker.hpp.

#include "harness/placement.hpp"
#include "harness/questions.hpp"

#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace {

using namespace tonari::bench;

using Ask = std::function<void(TonariOneSidedWire&, const Options&, Output&)>;

void ask_tonari(const Ask& ask, const Options& options) {
  bind_as_told(options);
  tonari::Job job;
  tonari::Communicator communicator(job);
  TonariOneSidedWire wire(job, communicator);
  Output output(options, wire.rank());
  output.system(options.text("name", wire.system()));
  ask(wire, options, output);
  output.done();
}

int run(const std::string& question, const Options& options) {
  const std::map<std::string, Ask> of_tonari{{"pingpong", ask_pingpong},
                                             {"match", ask_match},
                                             {"rate", ask_rate},
                                             {"behind", ask_behind},
                                             {"barrier", ask_barrier},
                                             {"broadcast", ask_broadcast},
                                             {"allreduce", ask_allreduce},
                                             {"alltoall", ask_alltoall},
                                             {"contention", ask_contention},
                                             {"lu", ask_lu},
                                             {"overlap", ask_overlap},
                                             {"window", ask_window},
                                             {"atomics", ask_atomics},
                                             {"lock", ask_lock},
                                             {"multicast", ask_multicast},
                                             {"register", ask_register}};
  const std::map<std::pair<std::string, std::string>, void (*)(const Options&)> of_others{
      {{"coherence", "tonari"}, ask_coherence},
      {{"queue-depth", "tonari"}, ask_queue_depth},
      {{"splash_fft", "tonari"}, ask_splash_fft},
      {{"jacobi", "tonari"}, ask_jacobi},
      {{"himeno", "tonari"}, ask_himeno},
      {{"sor", "tonari"}, ask_sor},
      {{"is", "tonari"}, ask_is},
      {{"pingpong", "ring"}, ask_pingpong_of_ring},
      {{"match", "lhs"}, ask_match_of_heads},
      {{"match", "no-lhs"}, ask_match_of_common_buffer},
      {{"diff", "tonari"}, ask_diff},
      {{"diff", "byte-loop"}, ask_diff_of_loop},
      {{"diff", "memcmp"}, ask_diff_of_memcmp},
      {{"window", "memcpy"}, ask_window_of_memcpy},
      {{"window", "process-vm"}, ask_window_of_process_vm}};
  const auto system = options.text("system", "tonari");
  if (const auto found = of_tonari.find(question); system == "tonari" && found != of_tonari.end()) {
    ask_tonari(found->second, options);
  } else if (const auto other = of_others.find({question, system}); other != of_others.end()) {
    other->second(options);
  } else {
    std::fprintf(stderr, "bench-worker: no question '%s' to %s; `tonari bench` lists them\n", question.c_str(),
                 system.c_str());
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", Options(argc, argv, 2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-worker: %s\n", error.what());
    return 1;
  }
}
