#pragma once

#include <tonari/job.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

// Code that programs share which a test starts as ranks, and whose output it reads.
namespace tonari::test {

inline void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

inline std::string name(int rank) { return "rank " + std::to_string(rank); }

/// For main(): runs `act(job, arguments)` in a job. Prints "rank R did it", or the error, before the rank leaves the
/// job and the others end.
template <class Act>
int run_rank(int argc, char** argv, const Act& act) {
  try {
    Job job;
    try {
      act(job, std::vector<std::string>(argv + 1, argv + argc));
      say(name(job.rank().value()) + " did it");
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "%s: %s\n", name(job.rank().value()).c_str(), failure.what());
      throw;
    }
  } catch (const std::exception&) {
    return 1;
  }
  return 0;
}

}  // namespace tonari::test
