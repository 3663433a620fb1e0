#pragma once

#include "base/file_descriptor.hpp"
#include "cli/launch.hpp"
#include "cli/launch_program.hpp"
#include "cli/launch_signals.hpp"
#include "far/control.hpp"
#include "job/out_of_memory.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

/// The options of `tonari far`, and the program that it runs.
struct FarOptions {
  enum class Print : std::uint8_t { nothing, text, json };

  far::Limit local{.bytes = 0, .percent = 50};
  std::string servers = "1";            ///< How many processes lend memory; or the hosts, with one server each.
  std::optional<std::uint64_t> memory;  ///< Bytes that each server lends; if empty, it finds out what its host has.
  bool at_once = false;                 ///< The servers take their memory before the program starts.
  std::uint64_t replicas = 1;
  far::StoreKind store = far::StoreKind::ram;
  far::FaultsBy faults = far::FaultsBy::choice;
  std::string directory;  ///< Absolute path of the directory for the file, if pages are kept in a file.
  /// Smallest allocation that is far. Python keeps small objects in mappings of 1 MiB, which should stay local.
  std::uint64_t min_bytes = (1 << 20) + 1;
  bool with_heap = false;      ///< Small allocations are far, too.
  bool with_children = false;  ///< Programs that it starts have far memory, too.
  bool on_one_core = false;    ///< The program, the keeper, and the servers on this machine.
  Print statistics = Print::nothing;
  bool progress = false;
  LaunchOptions placement;  ///< How the servers are started.
  std::vector<std::string> program;
};

/// One run of a program with far memory: the job of the keeper and the servers, and the program.
///
/// Owns:    the processes of both, which do not outlive it.
/// Threads: one.
class FarRun {
 public:
  explicit FarRun(const FarOptions& options);  ///< Starts the servers, and waits for the keeper. Throws SetupError.
  ~FarRun();
  FarRun(FarRun&&) = delete;

  /// Returns when the program has ended, and so have its descendants that have far memory. Returns the exit status of
  /// the program, as shells count.
  int run();

 private:
  void start_servers();
  void wait_for_keeper();
  std::optional<ProgramError> start_program();
  void reap_program();
  void pass_signals_on();
  bool receive_from_keeper();
  void take_report(const far::Report& report) noexcept;
  [[nodiscard]] std::string_view where_its_message_is() const;
  /// `killed` names the process, if the out-of-memory killer has ended one meanwhile.
  void end_program(const std::string& why, std::string_view killed = "a process, probably a server") noexcept;
  void say_if_memory_was_short(std::string_view process) const;
  void show_progress();
  void show_results();
  [[nodiscard]] std::string why_nothing_was_far(bool some_stayed_local) const;
  std::optional<far::Statistics> ask_for_statistics();

  const FarOptions& options_;
  SignalInbox signals_;
  std::string name_;  // of the socket where we listen for the keeper
  FileDescriptor listener_;
  FileDescriptor keeper_;
  FileDescriptor clock_;
  pid_t servers_ = 0;
  FileDescriptor servers_process_;
  pid_t program_ = 0;
  FileDescriptor program_process_;
  std::uint64_t room_ = 0;  // free bytes of the disk, if pages are kept in a file
  far::Statistics at_start_{};
  far::Statistics seen_{};  // as of the last line of progress
  int exit_status_ = 0;     // of the program, once it has ended
  bool kept_ = false;       // the keeper manages the program's far memory
  bool all_gone_ = false;   // no process has far memory any more
  bool failed_ = false;     // the program was ended by us
  job::OutOfMemoryWatch memory_;
};

}  // namespace tonari::cli
