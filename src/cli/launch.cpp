#include "cli/launch.hpp"

#include "cli/launch_job.hpp"
#include "cli/launch_statistics.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <cstdio>

namespace tonari::cli {

namespace {

bool has_joined(const job::Gatekeeper& gatekeeper) {
  for (int rank = 0; rank < gatekeeper.arena().ranks(); ++rank) {
    if (gatekeeper.joined(rank)) return true;
  }
  return false;
}

}  // namespace

void add_rank_options(CLI::App& command, LaunchOptions& options) {
  command.add_option("-n,--ranks", options.ranks, "Number of ranks; as many as there are cores if left out")
      ->type_name("N")
      ->check([](const std::string& text) {
        return text.find_first_not_of("0123456789") != text.npos || text.find_first_not_of('0') == text.npos
                   ? "it takes a number of ranks, 1 or more; " + text + " is none"
                   : std::string{};
      });
  command
      .add_option("--bind", options.bind,
                  "core: each rank to a core, in turn; none: wherever the system likes. If left out, core when there "
                  "are no more ranks than cores")
      ->check(CLI::IsMember({"core", "none"}).description(""))
      ->type_name("core|none");
  command
      .add_option("--apart", options.apart,
                  "Make every rank a host of its own: for the sharing protocol alone (memory), or for the transport "
                  "too (network)")
      ->check(CLI::IsMember({"memory", "network"}).description(""))
      ->type_name("memory|network");
}

int launch(const LaunchOptions& options) {
  if (options.program.empty()) throw SetupError("there is no program to run");
  if (const auto error = check_program(options.program.front())) {
    fmt::print(stderr, "tonari run: {}\n", error->text);
    return error->exit_status;
  }
  std::fflush(nullptr);  // what is still in our buffers would be written by every rank that fails to start

  LaunchedJob job{options, options.ranks > 0 ? options.ranks : usable_cores()};
  const int status = job.run();
  if (options.statistics && has_joined(job.gatekeeper())) {
    fmt::print(stderr, "{}", statistics_table(job.gatekeeper().arena()));
  }
  return status;
}

}  // namespace tonari::cli
