#include "driver/mpis.hpp"

#include "driver/paths.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;

constexpr Mpi known_mpis[]{{Family::openmpi, "openmpi", "mpirun.openmpi", "openmpi-bin libopenmpi-dev"},
                           {Family::mpich, "mpich", "mpiexec.mpich", "mpich libmpich-dev"},
                           {Family::openmpi5, "openmpi5", "", ""},
                           {Family::mpich5, "mpich5", "", ""},
                           {Family::impi, "impi", "", ""}};

bool is_of_pypi(const Mpi& mpi) { return mpi.launcher.empty(); }

/// Returns the folder into which scripts/pypi-mpis installs it.
fs::path folder_of(const Mpi& mpi) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  const auto caches = cache != nullptr ? fs::path(cache) : fs::path(home != nullptr ? home : "/root") / ".cache";
  return caches / "tonari" / mpi.name;
}

std::string launcher_of(const Mpi& mpi) {
  return is_of_pypi(mpi) ? (folder_of(mpi) / "bin" / "mpiexec").string() : std::string(mpi.launcher);
}

bool is_by_verbs(const cli::LaunchOptions& launch) { return launch.network == "rc" || launch.network == "ud"; }

// The environments below make an MPI's ranks on one machine communicate like hosts: by TCP over the loopback device, or
// by verbs.

/// It also names Open MPI's one-sided component. Debian's settings (osc = ^ucx,pt2pt) leave sm, which is shared memory,
/// and rdma, which cannot use btl tcp. pt2pt sends messages by the btl, but refuses MPI_THREAD_MULTIPLE. Open MPI 5 has
/// no pt2pt, and its rdma can use btl tcp.
std::vector<std::string> openmpi_apart(const System& system, const cli::LaunchOptions& launch) {
  const bool is_new = system.family == Family::openmpi5;
  if (is_by_verbs(launch)) return {"UCX_TLS=" + launch.network + ",self", "OMPI_MCA_pml=ucx", "OMPI_MCA_osc=ucx"};
  return {"UCX_TLS=tcp,self", "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=tcp,self", "OMPI_MCA_btl_tcp_if_include=lo",
          is_new                   ? "OMPI_MCA_osc=rdma"
          : system.thread_multiple ? "OMPI_MCA_osc=ucx"
                                   : "OMPI_MCA_osc=pt2pt"};
}

/// Debian's MPICH communicates by UCX, PyPI's by libfabric.
std::vector<std::string> mpich_apart(const cli::LaunchOptions& launch) {
  if (is_by_verbs(launch)) return {"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=" + launch.network + ",self", "FI_PROVIDER=verbs"};
  return {"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "FI_PROVIDER=tcp", "FI_TCP_IFACE=lo"};
}

std::vector<std::string> impi_apart(const cli::LaunchOptions& launch) {
  const std::string provider = is_by_verbs(launch) ? "verbs" : "tcp";
  return {"I_MPI_FABRICS=ofi", "I_MPI_COLL_INTRANODE=pt2pt", "FI_PROVIDER=" + provider, "FI_TCP_IFACE=lo"};
}

void add(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

Command for_openmpi(const Mpi& mpi, const System& system, const Ask& ask) {
  Command command{{launcher_of(mpi), "-n", std::to_string(ask.launch.ranks)}, {}};
  auto& arguments = command.arguments;
  const bool crowded = ask.launch.ranks > cli::usable_cores();
  if (crowded) arguments.emplace_back("--oversubscribe");  // ranks then yield their processor while they wait
  add(arguments, {"--bind-to", !is_bound(ask.launch) ? "none" : crowded ? "core:overload-allowed" : "core"});
  add(arguments, ask.openmpi_arguments);
  arguments.push_back(rival(mpi.name, ask.question));
  if (ask.launch.apart == "network") command.environment = openmpi_apart(system, ask.launch);
  if (::geteuid() == 0) add(command.environment, {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
  return command;
}

Command for_mpich(const Mpi& mpi, const Ask& ask) {
  Command command{{launcher_of(mpi), "-n", std::to_string(ask.launch.ranks), "-bind-to",
                   is_bound(ask.launch) ? "core" : "none", rival(mpi.name, ask.question)},
                  {}};
  if (ask.launch.apart == "network") command.environment = mpich_apart(ask.launch);
  return command;
}

/// Intel's launcher binds by an environment variable. It binds each rank to the cores of its share, unless told not to.
Command for_impi(const Mpi& mpi, const Ask& ask) {
  Command command{{launcher_of(mpi), "-n", std::to_string(ask.launch.ranks), rival(mpi.name, ask.question)},
                  {is_bound(ask.launch) ? "I_MPI_PIN_DOMAIN=core" : "I_MPI_PIN=0",
                   "I_MPI_ROOT=" + folder_of(mpi).string(), "LD_LIBRARY_PATH=" + (folder_of(mpi) / "lib").string()}};
  if (ask.launch.apart == "network") add(command.environment, impi_apart(ask.launch));
  return command;
}

}  // namespace

std::span<const Mpi> mpis() noexcept { return known_mpis; }

std::vector<std::string_view> names_of_mpis() {
  std::vector<std::string_view> names;
  for (const auto& mpi : known_mpis) names.push_back(mpi.name);
  return names;
}

const Mpi* mpi_of(Family family) noexcept {
  const auto* const found = std::ranges::find(known_mpis, family, &Mpi::family);
  return found == std::end(known_mpis) ? nullptr : found;
}

void check_mpi(const Mpi& mpi, std::string_view benchmark) {
  const auto launcher = launcher_of(mpi);
  const auto program = rival(mpi.name, benchmark);
  const auto install = is_of_pypi(mpi) ? fmt::format("`scripts/pypi-mpis {}` installs it from PyPI", mpi.name)
                                       : fmt::format("install {}", mpi.packages);
  if (is_of_pypi(mpi) ? !is_program(launcher) : !in_path(launcher)) {
    throw SetupError(fmt::format("--rival {}: {} is not installed; {} (`make bench` does), then build again", mpi.name,
                                 launcher, install));
  }
  if (is_program(program)) return;
  throw SetupError(fmt::format("--rival {}: {} is missing; {}, then build again (`make bench` does both)", mpi.name,
                               program.string(), install));
}

Command command_of_mpi(const Mpi& mpi, const System& system, const Ask& ask) {
  switch (mpi.family) {
    case Family::openmpi:
    case Family::openmpi5: return for_openmpi(mpi, system, ask);
    case Family::impi: return for_impi(mpi, ask);
    default: return for_mpich(mpi, ask);
  }
}

}  // namespace tonari::bench::driver
