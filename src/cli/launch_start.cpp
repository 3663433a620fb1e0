// LaunchedJob: starting the ranks, with their environment and binding.

#include "cli/launch_binding.hpp"
#include "cli/launch_job.hpp"
#include "cli/preload.hpp"
#include "cli/standard_streams.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace tonari::cli {

namespace {

std::string_view name_of(std::string_view pair) { return pair.substr(0, pair.find('=')); }

void check_is_set(const std::string& name) {
  if (std::getenv(name.c_str()) == nullptr) {
    throw SetupError(
        fmt::format("--env {}: {} is not set here; write --env {}=VALUE, or leave it out", name, name, name));
  }
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

/// The processors of each rank, in turn; empty if ranks are not bound. Throws SetupError if --bind core is impossible.
std::vector<cpu_set_t> choose_places(const LaunchOptions& options, int ranks) {
  if (options.bind == "none") return {};
  const bool is_default = options.bind.empty();
  try {
    std::vector<cpu_set_t> cores = usable_core_sets();
    // Ranks that share a core run better if the system may move them.
    if (is_default && static_cast<int>(cores.size()) < ranks) return {};
    check_binding_is_allowed();
    return cores;
  } catch (const SetupError& error) {
    if (!is_default) throw;
    print_stderr("tonari run: ranks are not bound to cores: {}\n", error.what());
    return {};
  }
}

}  // namespace

std::vector<std::string> LaunchedJob::environment_of_all() const {
  std::vector<std::string> ours = job_server_.environment();
  ours.push_back(fmt::format("TONARI_SIZE={}", count()));
  if (!options_.apart.empty()) ours.push_back("TONARI_APART=" + options_.apart);
  if (!options_.network.empty()) ours.push_back("TONARI_NETWORK=" + options_.network);
  for (const std::string& asked : options_.environment) {
    if (asked.find('=') != asked.npos) {
      ours.push_back(asked);
    } else {
      check_is_set(asked);
    }
  }
  if (const auto preload = preload_of_ranks(options_)) {  // which keeps libraries named by --env and by our environment
    std::erase_if(ours, [](const std::string& pair) { return name_of(pair) == "LD_PRELOAD"; });
    ours.push_back("LD_PRELOAD=" + *preload);
  }
  std::vector<std::string> all;
  for (char** inherited = ::environ; *inherited != nullptr; ++inherited) {
    const auto name = name_of(*inherited);
    const auto is_same = [&](std::string_view pair) { return name_of(pair) == name; };
    if (name != "TONARI_RANK" && std::ranges::none_of(ours, is_same)) all.emplace_back(*inherited);
  }
  all.insert(all.end(), ours.begin(), ours.end());
  return all;
}

void LaunchedJob::start_ranks() {
  const std::vector<cpu_set_t> places = choose_places(options_, count());
  const std::vector<const char*> arguments = pointers_to(options_.program);
  std::vector<std::string> environment = environment_of_all();
  environment.emplace_back();
  const bool at_terminal = ::isatty(STDIN_FILENO) == 1;

  for (int rank = 0; rank < count(); ++rank) {
    environment.back() = fmt::format("TONARI_RANK={}", rank);
    const std::vector<const char*> variables = pointers_to(environment);
    Birth birth{.rank = rank,
                // Only the foreground group may read from a terminal: there rank 0 stays in our group.
                .own_group = !(rank == 0 && at_terminal),
                .keeps_input = rank == 0,
                .arguments = arguments.data(),
                .environment = variables.data(),
                .processors = {},
                .signals = signals_.mask_before(),
                .descriptors = limit_.before(),
                .report = report_.writer.number()};
    if (!places.empty()) birth.processors = places[static_cast<std::size_t>(rank) % places.size()];

    Newborn born = give_birth(birth);
    at(rank).pid = born.pid;
    at(rank).own_group = birth.own_group;
    at(rank).process = std::move(born.process);
    forwarder_.add(rank, std::move(born.output), std::move(born.error));
    watch(at(rank).process.number(), Source::process, rank);
  }
  report_.writer = {};
  ::fcntl(report_.reader.number(), F_SETFL, O_NONBLOCK);
}

void LaunchedJob::hear_exec_failures() {
  if (!report_.reader) return;
  ExecFailure failure{};
  const auto bytes = ::read(report_.reader.number(), &failure, sizeof failure);
  if (bytes < 0) return;  // some ranks have not executed their program yet
  if (bytes == sizeof failure) {
    const ProgramError error = explain_exec_failure(options_.program.front(), failure.error);
    forwarder_.say(error.text);
    status_ = error.exit_status;
    quiet_ = failed_ = true;
    signal_all(SIGKILL, true);
  }
  report_.reader = {};  // one report is enough: all ranks execute the same program
}

}  // namespace tonari::cli
