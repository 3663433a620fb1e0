#include <tonari/job.hpp>
#include <tonari/message.hpp>

#include <memory>
#include <utility>

// A library that a Python program loads, which uses tonari::Job. The program uses MPI through another library.

namespace {
std::unique_ptr<tonari::Job> job;
}

/// Returns the rank, or -1.
extern "C" int begin() try {
  job = std::make_unique<tonari::Job>();
  return job->rank().value();
} catch (const tonari::SetupError&) {
  return -1;
}

/// Returns the sum of the ranks' values.
extern "C" int sum_of(int value) {
  const tonari::Status status = tonari::Communicator(*job).all_reduce(value, [](int a, int b) { return a + b; });
  return status == tonari::Status::ok ? value : -1;
}

extern "C" void end() { job.reset(); }
