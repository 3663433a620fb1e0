// bench-worker QUESTION --key=value...: `tonari bench` starts it. See worker.hpp.

#include "harness/registry.hpp"

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
  using namespace tonari::bench;
  try {
    const std::string question = argc > 1 ? argv[1] : "";
    const Options options(argc, argv, 2);
    const auto system = options.text("system", "tonari");
    const auto measure = find_measurement(question, system);
    if (measure == nullptr) {
      std::fprintf(stderr, "bench-worker: no question '%s' to %s; `tonari bench` lists them\n", question.c_str(),
                   system.c_str());
      return 2;
    }
    measure(options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-worker: %s\n", error.what());
    return 1;
  }
}
