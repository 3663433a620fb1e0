#include "cli/command.hpp"
#include "cli/far_limit.hpp"
#include "cli/far_run.hpp"
#include "cli/launch_program.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "job/arena.hpp"
#include "pager/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace tonari::cli {

namespace {

constexpr auto far_footer =
    "Far data: allocations and anonymous mappings of at least --min-size, made by malloc, operator new, mmap and "
    "similar calls, and static arrays of that size. Smaller ones, stacks and files stay local. The program needs no "
    "change, but must be dynamically linked. A script or a command such as env or timeout passes far memory on to the "
    "program that it executes or starts. Once a process has large data, the programs that it starts have far memory "
    "only with --children.\n"
    "\n"
    "Servers: processes that lend memory, on this machine or on other hosts. --memory limits how much each may hold; a "
    "server takes it as it is needed.\n"
    "\n"
    "Exit status: the program's; 128 + the signal that killed it; 137 if tonari ended it because its far memory was "
    "lost or full; 126 or 127 if it cannot be started; 2 for a wrong command line, or servers that do not start.\n"
    "\n"
    "Examples:\n"
    "  tonari far --local 20% -- ./program\n"
    "  tonari far --local 20% --store lz4 -- ./program\n"
    "  tonari far --local 4G --store file:/scratch -- ./program\n"
    "  tonari far --local 4G --store lz4,file:/scratch --memory 8G -- ./program\n"
    "  tonari far --local 20% --children -- sh -c './first | ./second'\n"
    "  tonari far --local 4G --servers node1,node2 --replicas 2 --stats -- ./program big.dat";

CLI::Validator servers_or_hosts() {
  return {[number = whole_number("a number of servers", 1, job::ranks_per_host_max - 1)](std::string& text) {
            const bool is_number = text.starts_with('-') ||
                                   std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
            return is_number ? number(text) : std::string();  // names of hosts are checked when the servers are started
          },
          ""};
}

constexpr std::string_view file_prefix = "file:";
constexpr std::string_view lz4_file_prefix = "lz4,file:";

/// Returns the directory that `text` names after this prefix; empty if it names none.
std::string_view directory_after(std::string_view prefix, std::string_view text) {
  return text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
}

CLI::Validator kind_of_store() {
  return {[](std::string& text) {
            const bool has_directory =
                !directory_after(file_prefix, text).empty() || !directory_after(lz4_file_prefix, text).empty();
            if (text == "ram" || text == "lz4" || has_directory) return std::string();
            return fmt::format("must be ram, lz4, file:DIRECTORY, or lz4,file:DIRECTORY, not '{}'", text);
          },
          ""};
}

void set_store(FarOptions& options, const std::string& text) {
  using far::StoreKind;
  const bool compresses = text.starts_with("lz4");
  const std::string_view directory = directory_after(compresses ? lz4_file_prefix : file_prefix, text);
  if (directory.empty()) {
    options.store = compresses ? StoreKind::lz4 : StoreKind::ram;
  } else {
    options.store = compresses ? StoreKind::lz4_file : StoreKind::file;
    options.directory = std::filesystem::absolute(directory);
  }
}

// Throws SetupError for an option of servers if there are none.
void check_without_servers(const CLI::App& far) {
  for (const char* const option : {"--servers", "--memory", "--at-once", "--replicas"}) {
    if (far.get_option(option)->empty()) continue;
    throw SetupError(
        fmt::format("{} has no effect with --store file:DIRECTORY, which uses no servers: omit one of "
                    "the two",
                    option));
  }
}

int run_far(const FarOptions& options) {
  if (options.program.empty()) throw SetupError("the program is missing; see tonari far --help");
  if (const auto error = check_program(options.program.front())) {
    print_stderr("tonari far: {}\n", error->text);
    return error->exit_status;
  }
  return FarRun(options).run();
}

}  // namespace

void add_far(CLI::App& app, const std::vector<std::string>& program, int& exit_status) {
  CLI::App& far = *app.add_subcommand("far", "Run an unchanged program with memory of other processes and hosts.")
                       ->group("Commands");
  const auto options = std::make_shared<FarOptions>();
  far.add_option_function<std::vector<std::string>>(
         "PROGRAM", [](const auto&) {}, "The program, and its arguments; tonari's options come before it")
      ->option_text("[--] PROGRAM [ARGUMENTS...]")
      ->group("Program");
  far.add_option_function<std::string>(
         "--local", [options](const std::string& text) { options->local = limit_of(text); },
         "How much of its large data the program may keep in its own memory: a size, or a share of the data it has "
         "touched (default: 50%; a size is at least 8 MiB, a share at least 64 MiB)")
      ->type_name("SIZE|P%")
      ->check(share_or_size())
      ->group("Memory");
  far.add_option("--servers", options->servers,
                 "How many processes lend memory on this machine; or names of hosts, on each of which one process does "
                 "(default: 1)")
      ->type_name("N|HOSTS")
      ->check(servers_or_hosts())
      ->group("Memory");
  far.add_option_function<std::uint64_t>(
         "--memory", [options](std::uint64_t bytes) { options->memory = bytes; },
         "How much each server lends (default: nine tenths of the memory that its host has available, less the "
         "program's local data on its own host)")
      ->type_name("SIZE")
      ->transform(size_in_units_of(pager::block_bytes))
      ->group("Memory");
  far.add_flag("--at-once", options->at_once,
               "Servers take all their memory before the program starts, instead of as it is needed")
      ->disable_flag_override()
      ->group("Memory");
  far.add_option("--replicas", options->replicas,
                 "How many servers keep each page: with 2, one server may die (default: 1)")
      ->type_name("1|2")
      ->check(one_of({"1", "2"}))
      ->group("Memory");
  far.add_option_function<std::string>(
         "--store", [options](const std::string& text) { set_store(*options, text); },
         "How pages are kept: ram: by servers, as they are. lz4: by servers, compressed, so that even servers on the "
         "same machine gain memory. file:DIRECTORY: in a file without a name in that directory, without servers. "
         "lz4,file:DIRECTORY: as lz4, and when the servers are nearly full, cold pages in such a file (default: ram)")
      ->type_name("ram|lz4|file:DIRECTORY|lz4,file:DIRECTORY")
      ->check(kind_of_store())
      ->group("Memory");
  far.add_option("--min-size", options->min_bytes,
                 "Allocations from this size on go to far memory (default: all above 1M)")
      ->type_name("SIZE")
      ->transform(size_in_bytes())
      ->group("Memory");
  far.add_flag("--heap", options->with_heap,
               "Small allocations are far memory, too: malloc becomes that of jemalloc, which must be installed")
      ->disable_flag_override()
      ->group("Memory");
  far.add_flag("--children", options->with_children,
               "Programs that the program starts have far memory, too, each its own; if --local is a size, all of them "
               "share it")
      ->disable_flag_override()
      ->group("Memory");
  far.add_option_function<std::string>(
         "--faults",
         [options](const std::string& text) {
           const auto* const name = std::ranges::find(far::names_of_faults_by, text);
           options->faults = static_cast<far::FaultsBy>(name - far::names_of_faults_by.begin());
         },
         "Page faults are served by: keeper: a process beside the program. self: the program's threads, as far as they "
         "can: two to four times as fast for random accesses. auto: self, unless the program does things that only "
         "keeper can serve (default: auto)")
      ->type_name("auto|keeper|self")
      ->check(one_of({"auto", "keeper", "self"}))
      ->group("Program");
  far.add_option_function<std::string>(
         "--bind", [options](const std::string& text) { options->on_one_core = text == "core"; },
         "core: the program, its keeper and this machine's servers on one processor, so that a fault wakes no other "
         "processor: faster for a program with one thread and random accesses (default: none)")
      ->type_name("core|none")
      ->check(one_of({"core", "none"}))
      ->group("Program");
  add_network_options(far, options->placement);
  far.add_option_function<std::string>(
         "--stats",
         [options](const std::string& text) {
           options->statistics = text == "json" ? FarOptions::Print::json : FarOptions::Print::text;
         },
         "Print statistics to standard error at the end, as text or as JSON: --stats, --stats=json")
      ->type_name("[=text|json]")
      ->expected(0, 1)
      ->default_str("text")
      ->check(one_of({"text", "json"}))
      ->group("Output");
  far.add_flag("--progress", options->progress, "Print one line per second to standard error")
      ->disable_flag_override()
      ->group("Output");
  far.footer(far_footer);
  far.callback([options, &far, &program, &exit_status] {
    options->program = program;
    if (!far::has_servers(options->store)) check_without_servers(far);
    if (options->with_heap && far.get_option("--min-size")->empty()) options->min_bytes = 1 << 20;
    // Threads can place only pages that are kept as they are, in memory that the program maps.
    if (options->faults == far::FaultsBy::choice && options->store != far::StoreKind::ram) {
      options->faults = far::FaultsBy::keeper;
    }
    exit_status = run_far(*options);
  });
}

}  // namespace tonari::cli
