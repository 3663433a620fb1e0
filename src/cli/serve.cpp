#include "cli/command.hpp"
#include "cli/far_limit.hpp"
#include "cli/options.hpp"
#include "far/budget.hpp"
#include "far/keeper.hpp"
#include "job/memory.hpp"
#include "pager/page.hpp"

#include <tonari/job.hpp>
#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace tonari::cli {

namespace {

constexpr auto serve_footer =
    "`tonari far` starts this command as a job: rank 0 is the keeper of the program's far memory, and the other ranks "
    "are servers, which lend their memory to it. It is of no use by hand.\n"
    "\n"
    "Examples:\n"
    "  tonari far --servers node1,node2 --memory 32G -- ./program";

struct ServeOptions {
  std::optional<std::uint64_t> memory;
  std::string front;
  far::Limit beside{.percent = 50};
  bool at_once = false;
};

std::uint64_t bytes_to_lend(const ServeOptions& options, const Job& job) {
  if (options.memory) {
    check_lendable(*options.memory);
    return *options.memory;
  }
  const std::uint64_t available = job::available_memory_bytes();
  std::uint64_t servers_here = 0;
  for (const JobRank rank : job.ranks()) {
    if (rank != 0 && job.host(rank) == job.host(job.rank())) ++servers_here;
  }
  const bool is_beside_program = job.host(JobRank{0}) == job.host(job.rank());
  const std::uint64_t all = is_beside_program ? far::lendable_bytes(available, options.beside) : available / 10 * 9;
  return std::max(all / std::max<std::uint64_t>(servers_here, 1) / pager::block_bytes, std::uint64_t{1}) *
         pager::block_bytes;
}

void serve(const ServeOptions& options) {
  Job job;
  if (job.size() < 2 && options.front.empty()) {  // without servers, the keeper uses a file
    throw SetupError(
        "this process is in no job, so there is no keeper to lend memory to; use `tonari far`, which starts servers");
  }
  if (job.rank() == 0) {
    far::Keeper(job, options.front).run();
  } else {
    far::lend(job, bytes_to_lend(options, job), options.at_once);
  }
}

}  // namespace

void add_serve(CLI::App& app, int&) {
  CLI::App& command = *app.add_subcommand("serve", "Lend memory to a job; `tonari far` starts it.")->group("Commands");
  const auto options = std::make_shared<ServeOptions>();
  command
      .add_option_function<std::uint64_t>(
          "--memory", [options](std::uint64_t bytes) { options->memory = bytes; },
          "How much to lend (default: nine tenths of the memory that this host has available, divided among its "
          "servers; on the program's host less, as --beside says)")
      ->type_name("SIZE")
      ->transform(size_in_units_of(pager::block_bytes));
  command.add_flag("--at-once", options->at_once, "Take all of it at the start, or fail, instead of as it is needed")
      ->disable_flag_override();
  command
      .add_option_function<std::string>(
          "--beside", [options](const std::string& text) { options->beside = limit_of(text); },
          "How much the program keeps local: servers on its host leave room for that (default: 50%)")
      ->type_name("SIZE|P%")
      ->check(share_or_size());
  command.add_option("--for", options->front, "The socket where `tonari far` listens")->type_name("NAME")->required();
  command.footer(serve_footer);
  command.callback([options] { serve(*options); });
}

}  // namespace tonari::cli
