#include "driver/systems.hpp"

#include "driver/mpis.hpp"
#include "driver/paths.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

/// The kernel's own methods to store data elsewhere.
struct KernelWay {
  Family family;
  std::string_view name;
  Overflow overflow;
};
constexpr KernelWay kernel_ways[]{{Family::swap_zram, "swap-zram", Overflow::swap_zram},
                                  {Family::swap_file, "swap-file", Overflow::swap_file},
                                  {Family::mmap, "mmap", Overflow::file}};

const KernelWay* kernel_way(Family family) {
  const auto* const found = std::ranges::find(kernel_ways, family, &KernelWay::family);
  return found == std::end(kernel_ways) ? nullptr : found;
}

/// The worker of the benchmark `programs`, beside its catalogue.
fs::path program_worker() { return program_folder() / "programs" / "worker.py"; }

fs::path far_program(std::string_view question) { return program_folder() / "far" / question; }

/// Returns the command that starts `program`, with its arguments, as tonari's ranks.
Command for_tonari(const Ask& ask, const std::vector<std::string>& program) {
  Command command{{tonari_command(), "run", "-n", std::to_string(ask.launch.ranks)}, {}};
  auto& arguments = command.arguments;
  arguments.insert(arguments.end(), {"--bind", is_bound(ask.launch) ? "core" : "none"});
  if (!ask.launch.apart.empty()) arguments.insert(arguments.end(), {"--apart", ask.launch.apart});
  if (!ask.launch.network.empty()) arguments.insert(arguments.end(), {"--network", ask.launch.network});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  command.environment = ask.launch.environment;
  return command;
}

/// Returns the name of a system that the worker runs itself, without a runtime.
std::optional<std::string_view> name_in_worker(Family family) {
  switch (family) {
    case Family::ring: return "ring";
    case Family::lhs: return "lhs";
    case Family::lhs_128: return "lhs-128";
    case Family::lhs_cut: return "lhs-cut";
    case Family::alpu: return "alpu";
    case Family::no_lhs: return "no-lhs";
    case Family::byte_loop: return "byte-loop";
    case Family::memcmp: return "memcmp";
    case Family::bare_memcpy: return "memcpy";
    case Family::process_vm: return "process-vm";
    default: return std::nullopt;
  }
}

Command for_worker_alone(std::string_view system, const Ask& ask) {
  return {{worker(), ask.question, fmt::format("--system={}", system),
           is_bound(ask.launch) ? "--bind=core" : "--bind=none"},
          {}};
}

Command for_ucx(const Ask& ask) {
  Command command{{rival("ucx", ask.question), is_bound(ask.launch) ? "--bind=core" : "--bind=none"}, {}};
  if (ask.launch.apart == "network") {
    const bool chosen = !ask.launch.network.empty() && ask.launch.network != "any";
    command.arguments.push_back("--transports=" + (chosen ? ask.launch.network : "tcp"));
  }
  return command;
}

std::uint64_t local_bytes(const FarAsk& far) {
  return far.data_bytes / 100 * static_cast<std::uint64_t>(far.local_percent);
}

/// A program's code, stacks and page tables, which a cgroup counts and `tonari far` does not.
constexpr std::uint64_t beside_data_bytes = 8 << 20;

TightMemory tight_memory(const KernelWay& way, const FarAsk& far) {
  return {.overflow = way.overflow,
          .limit_bytes = (far.limit_bytes != 0 ? far.limit_bytes : local_bytes(far)) + beside_data_bytes,
          .overflow_bytes = (far.program.empty() ? 1 : 2) * far.data_bytes / 4096 * 4096 + (64 << 20),
          .folder = far.folder};
}

/// Returns the value of --local. It is a size, since a share is relative to the memory touched so far, and would begin
/// low, while rivals have all of their memory from the start. At 100 per cent it is far above the data, so that it has
/// no effect. `tonari far` keeps at least 8 MiB local, and refuses a size of 0, which a tiny program would get.
std::string limit_of_far_program(const FarAsk& far) {
  constexpr std::uint64_t local_bytes_min = 8 << 20;
  return std::to_string(std::max(far.local_percent == 100 ? 2 * far.data_bytes : local_bytes(far), local_bytes_min));
}

/// Returns the command line before the program.
std::vector<std::string> before_far_program(const System& system, const Ask& ask) {
  std::vector<std::string> words{tonari_command(), "far", "--local", limit_of_far_program(*ask.far)};
  if (!ask.far->launch.servers.empty()) words.insert(words.end(), {"--servers", ask.far->launch.servers});
  if (!ask.far->launch.memory.empty()) words.insert(words.end(), {"--memory", ask.far->launch.memory});
  if (!ask.far->launch.faults.empty()) words.insert(words.end(), {"--faults", ask.far->launch.faults});
  if (ask.far->launch.heap) words.emplace_back("--heap");
  if (!ask.launch.apart.empty()) words.insert(words.end(), {"--apart", ask.launch.apart});
  if (!ask.launch.network.empty()) words.insert(words.end(), {"--network", ask.launch.network});
  if (system.family == Family::tonari_core) words.insert(words.end(), {"--bind", "core"});
  words.emplace_back("--");
  return words;
}

/// Returns the command of the worker that runs a program of another project, behind the words that limit its memory.
Command for_program(const System& system, const Ask& ask) {
  std::vector<std::string> before;
  std::string cgroup;
  if (kernel_way(system.family) != nullptr) {
    before = in_cgroup({}).arguments;
    cgroup = before.back();
  } else if (system.family != Family::local) {
    before = before_far_program(system, ask);
  }
  Command command{{"python3", program_worker(), ask.far->program, fmt::format("--system={}", to_string(system)),
                   fmt::format("--local={}", ask.far->local_percent)},
                  ask.launch.environment};
  if (!cgroup.empty()) command.arguments.push_back("--cgroup=" + cgroup);
  command.arguments.push_back("--before=" + nlohmann::json(before).dump());
  return command;
}

Command for_far(const System& system, const Ask& ask) {
  if (!ask.far->program.empty()) return for_program(system, ask);
  Command command{{far_program(ask.question), fmt::format("--system={}", to_string(system)),
                   fmt::format("--local={}", ask.far->local_percent)},
                  ask.launch.environment};
  if (const auto* const way = kernel_way(system.family)) {
    if (way->overflow == Overflow::file) {
      command.arguments.push_back("--file=" + mapped_file(tight_memory(*way, *ask.far)).string());
    }
    return in_cgroup(std::move(command));
  }
  if (system.family != Family::local) {
    const auto words = before_far_program(system, ask);
    command.arguments.insert(command.arguments.begin(), words.begin(), words.end());
  }
  return command;
}

Command for_system(const System& system, const Ask& ask) {
  if (ask.far && system.family != Family::ucx) return for_far(system, ask);
  switch (system.family) {
    case Family::tonari: return for_tonari(ask, {worker(), ask.question});
    case Family::tonari_mpi: return for_tonari(ask, {rival("tonari-mpi", ask.question), "--threads=multiple"});
    case Family::ucx: return for_ucx(ask);
    default: break;
  }
  if (const auto* const mpi = mpi_of(system.family)) return command_of_mpi(*mpi, system, ask);
  return for_worker_alone(*name_in_worker(system.family), ask);
}

void check_far(const System& system, const Ask& ask) {
  const auto& question = ask.question;
  const bool is_of_others = !ask.far->program.empty();
  const auto* const way = kernel_way(system.family);
  constexpr Family ours[]{Family::tonari, Family::tonari_core, Family::local};
  if (way == nullptr && std::ranges::find(ours, system.family) == std::end(ours)) {
    throw SetupError(fmt::format("--rival {}: it has no far memory; {} can be asked of swap-zram, swap-file and mmap",
                                 to_string(system), question));
  }
  if (is_of_others && system.family == Family::mmap) {
    throw SetupError("--rival mmap: unchanged programs do not map their data; choose swap-zram, swap-file");
  }
  if (is_of_others && !in_path("python3")) {
    throw SetupError("python3 is not installed; it runs the programs (`scripts/setup programs` installs it)");
  }
  const auto needed = is_of_others ? program_worker() : far_program(question);
  if (::access(needed.c_str(), is_of_others ? R_OK : X_OK) != 0) {
    throw SetupError(fmt::format("{} is missing; build it with -DTONARI_BENCH=ON, or run `make`", needed.string()));
  }
}

void check_verbs(const std::string& network) {
  const fs::path devices = "/sys/class/infiniband";
  std::error_code error;
  if (fs::exists(devices, error) && !fs::is_empty(devices, error)) return;
  throw SetupError(fmt::format("this machine has no RDMA device ({} has none), which --network {} needs",
                               devices.string(), network));
}

void check_tonari_mpi(std::string_view question) {
  const auto one_sided = names_of_benchmarks([](const Question& each) { return each.has_one_sided_mpi(); });
  if (std::ranges::find(one_sided, question) != one_sided.end()) {
    throw SetupError(
        fmt::format("--rival tonari-mpi: {} calls one-sided functions of MPI (MPI_Win_..., MPI_Put), which "
                    "tonari's MPI does not support yet; `tonari info --mpi` lists what is missing",
                    question));
  }
  const auto program = rival("tonari-mpi", question);
  if (is_program(program)) return;
  throw SetupError(fmt::format(
      "--rival tonari-mpi: {} is missing; build it with -DTONARI_BENCH=ON -DTONARI_FRONTS=ON, or run `make`",
      program.string()));
}

std::vector<std::string> names_with_ucx() {
  return names_of_benchmarks([](const Question& each) { return each.has_ucx(); });
}

bool has_ucx(std::string_view question) {
  const auto names = names_with_ucx();
  return std::ranges::find(names, question) != names.end();
}

void check_ucx(std::string_view question) {
  const auto program = rival("ucx", question);
  if (!has_ucx(question)) {
    throw SetupError(fmt::format("--rival ucx: ucx_perftest cannot be asked {}; it knows {}", question,
                                 fmt::join(names_with_ucx(), ", ")));
  }
  if (!is_program(program)) {
    throw SetupError(
        fmt::format("--rival ucx: {} is missing; build it with -DTONARI_BENCH=ON, or run `make`", program.string()));
  }
  for (const auto* const needed : {"ucx_perftest", "ucx_info"}) {
    if (in_path(needed)) continue;
    throw SetupError(fmt::format("--rival ucx: {} is not installed; install ucx-utils (`make bench` does)", needed));
  }
}

}  // namespace

bool is_bound(const cli::LaunchOptions& launch) {
  return launch.bind.empty() ? launch.ranks <= cli::usable_cores() : launch.bind == "core";
}

std::vector<System> parse_rivals(const std::vector<std::string>& names) {
  std::vector<System> systems;
  const auto add = [&](System system) {
    if (std::ranges::find(systems, system) == systems.end()) systems.push_back(system);
  };
  for (const auto& name : names) {
    const auto known = systems.size();
    bool found = false;
    for (const auto& mpi : mpis()) {
      const std::string family(mpi.name);
      if (name == family || name == family + "-default") add({mpi.family, false}), found = true;
      if (name == family || name == family + "-mt") add({mpi.family, true}), found = true;
    }
    if (name == "tonari-mpi") add({Family::tonari_mpi, false}), found = true;
    if (name == "ucx") add({Family::ucx, false}), found = true;
    const auto* const way = std::ranges::find(kernel_ways, name, &KernelWay::name);
    if (way != std::end(kernel_ways)) add({way->family, false}), found = true;
    if (!found && known == systems.size()) {
      throw SetupError(fmt::format(
          "--rival {}: no such rival; there are {} (both ways each, or one: openmpi-default, openmpi-mt), tonari-mpi, "
          "for some questions ucx, and for those about far memory swap-zram, swap-file and mmap",
          name, fmt::join(names_of_mpis(), ", ")));
    }
  }
  return systems;
}

bool is_tonari(const System& system) { return system.family == Family::tonari || system.family == Family::tonari_mpi; }

bool is_single_process(const System& system) { return name_in_worker(system.family).has_value(); }

void check_installed(const System& system, const Ask& ask) {
  const std::string_view question = ask.question;
  const bool is_link = system.family == Family::ucx && has_ucx(question);
  if (ask.far && !is_link) return check_far(system, ask);
  if (const auto* const way = kernel_way(system.family)) {
    const auto known = names_of_benchmarks([](const Question& each) { return each.is_of_far_memory(); });
    throw SetupError(
        fmt::format("--rival {}: swapping and mapped files can be rivals of {}", way->name, fmt::join(known, ", ")));
  }
  if (system.family == Family::tonari || name_in_worker(system.family)) {
    if (is_program(worker())) return;
    throw SetupError(fmt::format("{} is missing; build it with -DTONARI_BENCH=ON, or run `make`", worker().string()));
  }
  if (system.family == Family::ucx) return check_ucx(question);
  if (system.family == Family::tonari_mpi) return check_tonari_mpi(question);
  check_mpi(*mpi_of(system.family), question);
}

Command command_for(const System& system, const Ask& ask, const std::string& output) {
  auto command = for_system(system, ask);
  auto& arguments = command.arguments;
  arguments.push_back("--output=" + output);
  arguments.insert(arguments.end(), ask.arguments.begin(), ask.arguments.end());
  if (system.thread_multiple) arguments.emplace_back("--threads=multiple");
  command.environment.emplace_back("OPENBLAS_NUM_THREADS=1");  // ranks run in parallel, BLAS does not
  return command;
}

void try_surroundings(const System& system, const Ask& ask) {
  if (system.network == "rc" || system.network == "ud") check_verbs(system.network);
  const auto* const way = kernel_way(system.family);
  if (way == nullptr) return;
  check_tight_memory(way->overflow);
  constexpr std::uint64_t small_bytes = 64 << 20;
  const MadeTight made({way->overflow, small_bytes, small_bytes, ask.far->folder});
}

std::unique_ptr<MadeTight> make_surroundings(const System& system, const Ask& ask) {
  const auto* const way = kernel_way(system.family);
  return way == nullptr ? nullptr : std::make_unique<MadeTight>(tight_memory(*way, *ask.far));
}

std::string suffix_of(const System& system) { return system.network.empty() ? "" : " over " + system.network; }

std::string to_string(const System& system) {
  if (!system.network.empty()) return to_string({system.family, system.thread_multiple}) + suffix_of(system);
  if (system.family == Family::local) return "local";
  if (const auto* const way = kernel_way(system.family)) return std::string(way->name);
  if (system.family == Family::tonari) return "tonari";
  if (system.family == Family::tonari_core) return "tonari-core";
  if (system.family == Family::tonari_mpi) return "tonari-mpi";
  if (system.family == Family::ucx) return "ucx";
  if (const auto name = name_in_worker(system.family)) return std::string(*name);
  return std::string(mpi_of(system.family)->name) + (system.thread_multiple ? " thread-multiple" : "");
}

}  // namespace tonari::bench::driver
