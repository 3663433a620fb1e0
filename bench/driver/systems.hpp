#pragma once

#include "cli/launch.hpp"
#include "driver/child.hpp"
#include "driver/tight_memory.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// The kinds of systems that can be measured. The ring, the searches, the comparing loops and the bare copies are not
/// runtimes, but lower bounds. tonari_mpi is the rivals' program, linked with tonari's MPI. local is a program for far
/// memory with unlimited memory; tonari_core is `tonari far
/// --bind core`. UCX runs its own measurement, which supports few benchmarks.
enum class Family : std::uint8_t {
  tonari,
  tonari_core,
  tonari_mpi,
  ring,
  lhs,
  lhs_128,
  lhs_cut,
  no_lhs,
  alpu,
  byte_loop,
  memcmp,
  bare_memcpy,
  process_vm,
  openmpi,
  mpich,
  openmpi5,
  mpich5,
  impi,
  ucx,
  local,
  swap_zram,
  swap_file,
  mmap
};

struct System {
  Family family = Family::tonari;
  bool thread_multiple = false;  ///< An MPI started with MPI_THREAD_MULTIPLE.
  std::string network{};         ///< The transport, if several are measured: "tcp". Otherwise empty.

  bool operator==(const System&) const = default;
};

/// Options of `tonari far`; empty: its defaults.
struct FarLaunch {
  std::string servers;
  std::string memory;
  std::string faults;
  bool heap = false;
};

/// Parameters of a benchmark of far memory. The worker is a program that runs under `tonari far`, or in a memory
/// cgroup.
struct FarAsk {
  int local_percent = 100;
  std::uint64_t data_bytes = 0;  ///< For a program of another project, its peak memory when all of it is local.
  FarLaunch launch{};
  std::string folder;             ///< For swap files and mapped files.
  std::string program{};          ///< The program of another project that is run, of the catalogue of `programs`.
  std::uint64_t limit_bytes = 0;  ///< The memory of rivals; 0: local_percent of the data, and some for code.
  std::shared_ptr<const void> inputs{};  ///< Removes the inputs of such programs when the last copy ends.
};

/// A measurement to run, for any system.
struct Ask {
  std::string question;
  cli::LaunchOptions launch;                     ///< Ranks, binding, hosts; environment only for tonari, and its MPI.
  std::vector<std::string> arguments;            ///< For the worker: --key=value.
  std::vector<std::string> openmpi_arguments{};  ///< For Open MPI's launcher.
  std::optional<FarAsk> far{};
};

/// Returns the systems that a list of rivals names. An MPI's name gives two systems, with its default and with
/// MPI_THREAD_MULTIPLE; "openmpi-default" and "openmpi-mt" give one. See mpis.hpp. Other names are "tonari-mpi", "ucx",
/// "swap-zram", "swap-file" and "mmap". Throws SetupError on unknown names.
std::vector<System> parse_rivals(const std::vector<std::string>& names);

/// Returns whether each rank has a core of its own: as --bind says, or by default if there are enough cores.
bool is_bound(const cli::LaunchOptions& launch);

/// Returns whether its ranks are started by `tonari run`, and may have any number of threads.
bool is_tonari(const System& system);

/// Returns whether the worker runs it itself, without a runtime and without ranks: a bare loop, copy or search.
bool is_single_process(const System& system);

/// Throws SetupError, with the remedy, when `system` cannot measure `ask` here.
void check_installed(const System& system, const Ask& ask);

/// Tests whether the environment of `system` can be created: creates a small one, and removes it. Also tests whether
/// the machine has its network. Throws SetupError, with the remedy.
void try_surroundings(const System& system, const Ask& ask);

/// Returns the command that measures `ask` for `system`. Its rank 0 writes results to `output`.
Command command_for(const System& system, const Ask& ask, const std::string& output);

/// Creates the environment of `system`, which lasts as long as the result: for swap and mapped files, a cgroup and its
/// backing storage.
std::unique_ptr<MadeTight> make_surroundings(const System& system, const Ask& ask);

/// Returns what follows the name that the system reports: " over tcp" if several networks are measured.
std::string suffix_of(const System& system);

/// Returns the name for progress messages, before the system has reported its name and version.
std::string to_string(const System& system);

}  // namespace tonari::bench::driver
