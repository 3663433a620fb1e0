#include "cli/launch.hpp"

#include "cli/launch_binding.hpp"
#include "cli/launch_hosts.hpp"
#include "cli/launch_job.hpp"
#include "cli/launch_statistics.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <cstdio>

namespace tonari::cli {

namespace {

bool has_joined(const job::JobServer& job_server) {
  for (int rank = 0; rank < job_server.arena().ranks(); ++rank) {
    if (job_server.joined(rank)) return true;
  }
  return false;
}

}  // namespace

void add_rank_options(CLI::App& command, LaunchOptions& options, const std::string& default_ranks) {
  command.add_option("-n,--ranks", options.ranks, "Number of ranks; -np is the same (default: " + default_ranks + ")")
      ->type_name("N")
      ->transform(whole_number("a number of ranks", 1, job::ranks_per_host_max))
      ->group("Ranks");
  add_placement_options(command, options);
}

void add_placement_options(CLI::App& command, LaunchOptions& options) {
  command
      .add_option("--bind", options.bind,
                  "Bind each rank to a core, in turn (core), or let the system move the ranks (none) (default: core, "
                  "unless there are more ranks than cores)")
      ->type_name("core|none")
      ->check(one_of({"core", "none"}))
      ->group("Ranks");
  add_network_options(command, options);
}

void add_network_options(CLI::App& command, LaunchOptions& options) {
  command
      .add_option("--apart", options.apart,
                  "Treat every rank as a host of its own, to test and to measure: only in the sharing protocol "
                  "(memory), or in the transport, too (network)")
      ->type_name("memory|network")
      ->check(one_of({"memory", "network"}))
      ->group("Ranks");
  command
      .add_option("--network", options.network,
                  "The transport between hosts: TCP, verbs by reliable connections (rc) or by datagrams (ud), or the "
                  "fastest of these (any) (default: any)")
      ->type_name("any|tcp|rc|ud")
      ->check(one_of({"any", "tcp", "rc", "ud"}))
      ->group("Ranks");
}

void check_network_is_used(const LaunchOptions& options) {
  if (options.network.empty() || settings_of_ranks(options).apart == "network") return;
  throw SetupError(fmt::format(
      "--network {}: ranks of one machine use its memory, not the network; add --apart network to treat each "
      "as a host of its own, or leave out --network",
      options.network));
}

int launch(const LaunchOptions& options) {
  if (options.program.empty()) throw SetupError("the program is missing; see tonari run --help");
  if (options.hosts) return launch_on_hosts(options);
  check_network_is_used(options);
  if (const auto error = check_program(options.program.front())) {
    print_stderr("tonari run: {}\n", error->text);
    return error->exit_status;
  }
  std::fflush(nullptr);  // otherwise every rank that fails to start would write the contents of our buffers

  LaunchedJob job{options, options.ranks > 0 ? options.ranks : static_cast<int>(usable_core_sets().size())};
  const int status = job.run();
  if (options.statistics && has_joined(job.job_server())) {
    print_stderr("{}", statistics_table(job.job_server().arena()));
  } else if (options.statistics) {
    print_stderr("tonari: --stats: no rank has joined the job, so there are no counters to print\n");
  }
  return status;
}

}  // namespace tonari::cli
