#pragma once

#include "base/file_descriptor.hpp"
#include "cli/launch.hpp"
#include "cli/launch_program.hpp"
#include "cli/launch_signals.hpp"
#include "far/control.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tonari::cli {

/// What `tonari far` runs and how.
struct FarOptions {
  enum class Tell : std::uint8_t { nothing, text, json };

  far::Limit local{.bytes = 0, .percent = 50};
  std::string servers = "1";            ///< How many processes lend memory; or the hosts where one each does.
  std::optional<std::uint64_t> memory;  ///< That each lends; none: what its host has available.
  bool at_once = false;                 ///< They take it before the program starts.
  std::uint64_t replicas = 1;
  far::StoreKind store = far::StoreKind::ram;
  /// Python has its small objects in mappings of 1 MiB: they are no large data.
  std::uint64_t min_bytes = (1 << 20) + 1;
  bool with_children = false;  ///< What the program starts has far memory, too.
  bool on_one_core = false;    ///< The program, and all of ours on this machine.
  Tell statistics = Tell::nothing;
  bool progress = false;
  LaunchOptions placement;  ///< Of the servers.
  std::vector<std::string> program;
};

/// One run of a program with far memory: the servers' job, which the keeper belongs to, and the program.
///
/// Owns:    both, as processes: neither survives it.
/// Threads: one.
class FarRun {
 public:
  explicit FarRun(const FarOptions& options);  ///< Starts the servers, and waits for the keeper. Throws SetupError.
  ~FarRun();
  FarRun(FarRun&&) = delete;

  /// Until the program has ended, and what it started and has far memory. Answers its exit status, as shells count.
  int run();

 private:
  void start_servers();
  void wait_for_keeper();
  std::optional<ProgramError> start_program();
  void program_has_ended();
  void hear_signals();
  bool hear_keeper();
  void hear(const far::Report& report) noexcept;
  void end_program(const std::string& why) noexcept;
  void show_progress();
  void show_statistics();
  std::optional<far::Statistics> ask_for_statistics();

  const FarOptions& options_;
  SignalInbox signals_;
  std::string name_;  // where we listen
  FileDescriptor listener_;
  FileDescriptor keeper_;
  FileDescriptor clock_;
  pid_t servers_ = 0;
  FileDescriptor servers_process_;
  pid_t program_ = 0;
  FileDescriptor program_process_;
  far::Statistics at_start_{};
  far::Statistics seen_{};  // at the last line of progress
  int exit_status_ = 0;     // of the program, once it has ended
  bool kept_ = false;       // the keeper has the program
  bool all_gone_ = false;   // it has no process any more
  bool failed_ = false;     // the program was ended by us
};

}  // namespace tonari::cli
