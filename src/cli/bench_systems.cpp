#include "cli/bench_systems.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

namespace tonari::cli {

namespace {

namespace fs = std::filesystem;

/// An MPI as Debian and Ubuntu install it.
struct Mpi {
  Family family;
  std::string_view name;
  std::string_view launcher;
  std::string_view packages;
};
constexpr Mpi mpis[]{{Family::openmpi, "openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev"},
                     {Family::mpich, "mpich", "mpiexec.mpich", "mpich libmpich-dev"}};

const Mpi& mpi_of(Family family) { return family == Family::openmpi ? mpis[0] : mpis[1]; }

/// The folder above the one that this program lies in: programs find each other from there, built or installed.
fs::path prefix() { return fs::read_symlink("/proc/self/exe").parent_path().parent_path(); }

fs::path worker() { return prefix() / "bin" / "tonari-bench"; }

fs::path rival(Family family, std::string_view question) {
  return prefix() / "libexec" / "tonari" / "rivals" / mpi_of(family).name / question;
}

bool is_program(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

bool in_path(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / name)) return true;
  }
  return false;
}

bool bound(const LaunchOptions& launch) {
  return launch.bind.empty() ? launch.ranks <= usable_cores() : launch.bind == "core";
}

Command for_tonari(const Ask& ask) {
  Command command{{fs::read_symlink("/proc/self/exe"), "run", "-n", std::to_string(ask.launch.ranks)}, {}};
  auto& arguments = command.arguments;
  arguments.insert(arguments.end(), {"--bind", bound(ask.launch) ? "core" : "none"});
  if (!ask.launch.apart.empty()) arguments.insert(arguments.end(), {"--apart", ask.launch.apart});
  arguments.insert(arguments.end(), {"--", worker(), ask.question});
  command.environment = ask.launch.environment;
  return command;
}

/// A system that the worker itself is, without a runtime.
std::optional<std::string_view> name_in_worker(Family family) {
  switch (family) {
    case Family::ring: return "ring";
    case Family::lhs: return "lhs";
    case Family::no_lhs: return "no-lhs";
    default: return std::nullopt;
  }
}

Command for_worker_alone(std::string_view system, const Ask& ask) {
  return {
      {worker(), ask.question, fmt::format("--system={}", system), bound(ask.launch) ? "--bind=core" : "--bind=none"},
      {}};
}

Command for_openmpi(const Ask& ask) {
  Command command{{"mpirun.openmpi", "-n", std::to_string(ask.launch.ranks)}, {}};
  auto& arguments = command.arguments;
  const bool crowded = ask.launch.ranks > usable_cores();
  if (crowded) arguments.emplace_back("--oversubscribe");  // it then yields its processor while it waits
  arguments.insert(arguments.end(), {"--bind-to", !bound(ask.launch) ? "none"
                                                  : crowded          ? "core:overload-allowed"
                                                                     : "core"});
  arguments.push_back(rival(Family::openmpi, ask.question));
  if (::geteuid() == 0) command.environment = {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  return command;
}

Command for_mpich(const Ask& ask) {
  return {{"mpiexec.mpich", "-n", std::to_string(ask.launch.ranks), "-bind-to", bound(ask.launch) ? "core" : "none",
           rival(Family::mpich, ask.question)},
          {}};
}

Command for_family(Family family, const Ask& ask) {
  switch (family) {
    case Family::tonari: return for_tonari(ask);
    case Family::openmpi: return for_openmpi(ask);
    case Family::mpich: return for_mpich(ask);
    default: return for_worker_alone(*name_in_worker(family), ask);
  }
}

}  // namespace

std::vector<System> parse_rivals(const std::vector<std::string>& names) {
  std::vector<System> systems;
  const auto add = [&](System system) {
    if (std::ranges::find(systems, system) == systems.end()) systems.push_back(system);
  };
  for (const auto& name : names) {
    const auto known = systems.size();
    bool found = false;
    for (const auto& mpi : mpis) {
      const std::string family(mpi.name);
      if (name == family || name == family + "-default") add({mpi.family, false}), found = true;
      if (name == family || name == family + "-mt") add({mpi.family, true}), found = true;
    }
    if (!found && known == systems.size()) {
      throw SetupError(
          fmt::format("--rival {}: no such rival; there are openmpi and mpich (both ways each), and "
                      "openmpi-default, openmpi-mt, mpich-default, mpich-mt",
                      name));
    }
  }
  return systems;
}

void check_installed(const System& system, std::string_view question) {
  if (system.family == Family::tonari || name_in_worker(system.family)) {
    if (is_program(worker())) return;
    throw SetupError(fmt::format("{} is missing; build it with -DTONARI_BENCH=ON, or run `make`", worker().string()));
  }
  const auto& mpi = mpi_of(system.family);
  if (!in_path(mpi.launcher)) {
    throw SetupError(fmt::format("--rival {}: {} is not installed; install {} (`make bench` does), then build again",
                                 mpi.name, mpi.launcher, mpi.packages));
  }
  if (is_program(rival(system.family, question))) return;
  throw SetupError(fmt::format("--rival {}: {} is missing; install {}, then build again (`make bench` does both)",
                               mpi.name, rival(system.family, question).string(), mpi.packages));
}

Command command_for(const System& system, const Ask& ask, const std::string& output) {
  auto command = for_family(system.family, ask);
  auto& arguments = command.arguments;
  arguments.push_back("--output=" + output);
  arguments.insert(arguments.end(), ask.arguments.begin(), ask.arguments.end());
  if (system.thread_multiple) arguments.emplace_back("--threads=multiple");
  command.environment.emplace_back("OPENBLAS_NUM_THREADS=1");  // ranks are what runs in parallel
  return command;
}

std::string to_string(const System& system) {
  if (system.family == Family::tonari) return "tonari";
  if (const auto name = name_in_worker(system.family)) return std::string(*name);
  return std::string(mpi_of(system.family).name) + (system.thread_multiple ? " thread-multiple" : "");
}

}  // namespace tonari::cli
