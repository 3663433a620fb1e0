// tonari-bench QUESTION --key=value...: a worker of `tonari bench`, which starts it. See worker.hpp.

#include "questions.hpp"

#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>

namespace {

using namespace tonari::bench;

using Ask = std::function<void(TonariWire&, const Options&, Output&)>;

void ask_tonari(const Ask& ask, const Options& options) {
  tonari::Job job;
  tonari::Communicator communicator(job);
  TonariWire wire(communicator);
  Output output(options, wire.rank());
  output.system(wire.system());
  ask(wire, options, output);
  output.done();
}

int run(const std::string& question, const Options& options) {
  const std::map<std::string, Ask> questions{{"pingpong", ask_pingpong}, {"lu", ask_lu}};
  if (question == "pingpong" && options.text("system", "tonari") == "ring") {
    ask_pingpong_of_ring(options);
    return 0;
  }
  const auto found = questions.find(question);
  if (found == questions.end()) {
    std::fprintf(stderr, "tonari-bench: no question '%s'; `tonari bench` lists them\n", question.c_str());
    return 2;
  }
  ask_tonari(found->second, options);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "", Options(argc, argv, 2));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tonari-bench: %s\n", error.what());
    return 1;
  }
}
