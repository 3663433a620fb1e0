#include "driver/measuring.hpp"

#include "cli/standard_streams.hpp"
#include "driver/child.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

namespace tonari::bench::driver {

namespace {

/// Shows progress on standard error: one changing line on a terminal, otherwise one line per launch.
class Progress {
 public:
  void begin(const std::string& what) {
    what_ = what;
    if (!terminal_) cli::print_stderr("{}\n", what);
    show("");
  }
  void show(const std::string& detail) {
    if (!terminal_) return;
    cli::print_stderr("\r\033[K{}  {}", what_, detail);
    std::fflush(stderr);
  }
  void end() const {
    if (terminal_) cli::print_stderr("\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string what_;
};

/// Returns whether a failure of the system says nothing about tonari.
bool is_rival(const System& system) {
  switch (system.family) {
    case Family::openmpi:
    case Family::mpich:
    case Family::openmpi5:
    case Family::mpich5:
    case Family::impi:
    case Family::ucx:
    case Family::swap_zram:
    case Family::swap_file:
    case Family::mmap: return true;
    default: return false;
  }
}

/// Throws SetupError if the benchmark does not support the rival, or the machine does not have it.
void check_rival(const Question& question, const BenchOptions& options, const System& rival) {
  for (const auto& launch : question.plan(options, {{Family::tonari, false}, rival})) {
    if (std::ranges::count(launch.systems, rival) > 0) check_installed(rival, launch.ask);
  }
}

/// Returns the rivals that the benchmark supports and this machine has, without the names that --rival excludes. Says
/// on standard error which are left out.
std::vector<System> rivals_here(const Question& question, const BenchOptions& options) {
  std::vector<std::string> excluded;
  for (const auto& name : options.rivals) {
    if (name == "auto") continue;
    if (!name.starts_with('-')) throw SetupError(fmt::format("--rival auto,{}: only -NAME can follow auto", name));
    excluded.push_back(name.substr(1));
  }
  std::vector<std::string> names{"openmpi", "mpich", "openmpi5", "mpich5", "impi", "tonari-mpi"};
  if (question.is_of_far_memory()) {
    names = {"swap-zram", "swap-file"};
  } else if (question.has_ucx()) {
    names.emplace_back("ucx");
  }
  const auto not_asked = parse_rivals(excluded);
  std::vector<System> rivals;
  for (const auto& rival : parse_rivals(names)) {
    if (std::ranges::count(not_asked, rival) > 0) continue;
    try {
      check_rival(question, options, rival);
      rivals.push_back(rival);
    } catch (const SetupError& error) {
      cli::print_stderr("tonari bench {}: without {}: {}\n", question.name(), to_string(rival), error.what());
    }
  }
  return rivals;
}

class Measuring {
 public:
  Measuring(const Question& question, const BenchOptions& options, std::vector<Launch>& launches)
      : question_(question), options_(options), launches_(launches), rounds_(rounds_of(options)) {
    for (const auto& launch : launches_) systems_.insert(systems_.end(), launch.systems.begin(), launch.systems.end());
  }

  Results measure() {
    leave_out_unmeasurable();
    check_rivals_left();
    for (int round = 1; round <= rounds_; ++round) {
      for (const auto& launch : launches_) run(launch, round);
    }
    progress_.end();
    if (!has_measured_) check_rivals_left();
    return std::move(results_);
  }

 private:
  void run(const Launch& launch, int round) {
    for (const auto& system : launch.systems) run(launch, system, round, false);
    const bool repeats = rounds_ > 1 && !options_.no_noise_floor && is_compared(launch);
    if (repeats && !launch.systems.empty() && is_tonari(launch.systems.front())) {
      run(launch, launch.systems.front(), round, true);
    }
  }

  void run(const Launch& launch, const System& system, int round, bool again) {
    if (std::ranges::count(missing_, system) > 0) return;
    auto completed = launch;
    if (!question_.complete(completed.ask, system, results_)) return;
    progress_.begin(
        fmt::format("round {} of {}: {}{} {}", round, rounds_, to_string(system), again ? " again" : "", launch.note));
    std::unique_ptr<MadeTight> surroundings;
    try {
      surroundings = make_surroundings(system, completed.ask);
    } catch (const SetupError& error) {
      leave_out(system, error.what());
      return;
    }
    const auto failure = launch_workers(completed, system, round, again);
    if (!failure) {
      has_measured_ |= system.family != Family::local;
    } else if (!is_rival(system) && system.network.empty()) {
      throw SetupError(*failure);
    } else {
      leave_out(system, *failure);
    }
  }

  /// Runs the workers of a system, and adds their output to the results. Returns what went wrong.
  std::optional<std::string> launch_workers(const Launch& launch, const System& system, int round, bool again) {
    ResultFile file;
    const auto command = command_for(system, launch.ask, file.path());
    results_.begin_worker(round, launch.note, again, suffix_of(system));
    const int status = run_child(command, [&] {
      file.read_lines([&](std::string_view line) { results_.take(line); });
      progress_.show(results_.progress());
    });
    if (status == 0 && results_.end_worker()) return std::nullopt;
    progress_.end();
    const auto& last = results_.progress();
    return fmt::format("{} ended with status {}{}{}; it was asked: {}", to_string(system), status,
                       status == 0 ? ", before it was done" : "", last.empty() ? "" : fmt::format(" after {}", last),
                       to_string(command));
  }

  /// Returns whether the results of the launch are compared: it has a rival, or no launch has a rival.
  [[nodiscard]] bool is_compared(const Launch& launch) const {
    const auto has_rival = [](const Launch& one) { return std::ranges::any_of(one.systems, is_rival); };
    return has_rival(launch) || std::ranges::none_of(launches_, has_rival);
  }

  void leave_out(const System& system, const std::string& cause) {
    progress_.end();
    cli::print_stderr("tonari bench {}: without {}{}: {}\n", question_.name(), is_rival(system) ? "--rival " : "",
                      to_string(system), cause);
    missing_.push_back(system);
    results_.add_failed({to_string(system), cause});
  }

  /// Removes the systems whose surroundings cannot be made here, such as a limit of memory, or a network.
  void leave_out_unmeasurable() {
    std::vector<System> tried;
    for (const auto& launch : launches_) {
      for (const auto& system : launch.systems) {
        if (std::ranges::count(tried, system) > 0) continue;
        tried.push_back(system);
        try {
          try_surroundings(system, launch.ask);
        } catch (const SetupError& error) {
          leave_out(system, error.what());
        }
      }
    }
    for (auto& launch : launches_) {
      std::erase_if(launch.systems, [&](const auto& system) { return std::ranges::count(missing_, system) > 0; });
    }
  }

  /// Throws SetupError if only rivals were to be measured, and no rival is left.
  void check_rivals_left() const {
    const auto is_left = [&](const auto& system) {
      return system.family != Family::local && std::ranges::count(missing_, system) == 0;
    };
    if (options_.rivals_only && std::ranges::none_of(systems_, is_left)) {
      throw SetupError(
          fmt::format("--rivals-only: none of the rivals {} can be measured here", fmt::join(options_.rivals, ", ")));
    }
  }

  const StopSignals signals_;
  const Question& question_;
  const BenchOptions& options_;
  std::vector<Launch>& launches_;
  int rounds_;
  std::vector<System> systems_;  ///< All that the launches name.
  std::vector<System> missing_;
  Results results_;
  Progress progress_;
  bool has_measured_ = false;
};

}  // namespace

std::vector<System> systems_of(const Question& question, const BenchOptions& options) {
  std::vector<System> systems;
  if (!options.rivals_only) systems.push_back({Family::tonari, false});
  const bool is_automatic = std::ranges::count(options.rivals, "auto") > 0;
  const auto rivals = is_automatic ? rivals_here(question, options) : parse_rivals(options.rivals);
  systems.insert(systems.end(), rivals.begin(), rivals.end());
  if (systems.empty()) throw SetupError("--rivals-only without rivals: say which, --rival openmpi,mpich");
  return systems;
}

int rounds_of(const BenchOptions& options) { return options.rounds > 0 ? options.rounds : options.quick ? 1 : 5; }

Results measure(const Question& question, const BenchOptions& options, std::vector<Launch>& launches) {
  return Measuring(question, options, launches).measure();
}

}  // namespace tonari::bench::driver
