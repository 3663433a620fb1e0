#pragma once

#include "cli/bench_child.hpp"
#include "cli/launch.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

/// Who can be asked a question. The ring, the searches, the loops that compare and the bare copies are no runtimes:
/// what they do alone is compared with. UCX is asked by its own measurement, and few questions.
enum class Family : std::uint8_t {
  tonari,
  ring,
  lhs,
  no_lhs,
  byte_loop,
  memcmp,
  bare_memcpy,
  process_vm,
  openmpi,
  mpich,
  ucx
};

struct System {
  Family family = Family::tonari;
  bool thread_multiple = false;  ///< An MPI started for any number of threads.

  bool operator==(const System&) const = default;
};

/// What a worker is asked, of whatever system.
struct Ask {
  std::string question;
  LaunchOptions launch;                          ///< Ranks, binding, hosts; environment for tonari alone.
  std::vector<std::string> arguments;            ///< For the worker: --key=value.
  std::vector<std::string> openmpi_arguments{};  ///< For Open MPI's launcher.
};

/// The systems that a list of rivals names: each MPI at its default and for any number of threads; "openmpi-default"
/// and "openmpi-mt" ask for one of both; "ucx". Throws SetupError on other names.
std::vector<System> parse_rivals(const std::vector<std::string>& names);

/// Throws SetupError with the remedy when `system` cannot be asked `question` here.
void check_installed(const System& system, std::string_view question);

/// How `ask` is put to `system`; its rank 0 writes results to `output`.
Command command_for(const System& system, const Ask& ask, const std::string& output);

/// For progress, before a system has told its name and version.
std::string to_string(const System& system);

}  // namespace tonari::cli
