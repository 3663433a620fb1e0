#pragma once

#include "base/file_descriptor.hpp"
#include "job/handshake.hpp"
#include "job/pmix/client.hpp"
#include "job/process_watch.hpp"
#include "job/session.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tonari::job {

/// Joining of a process that no launcher started: a job of one rank.
class JoiningAlone final : public Joining {
 public:
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
};

/// Joining of a process under `tonari run`, even if wrappers were started in between. docs/modules/job.md draws the
/// sequence.
///
/// Owns:    the connection, which stays open until the rank has left. By its end each side learns that the other has
///          ended.
class JoiningRun final : public Joining {
 public:
  /// Reads the variables that `tonari run` sets. Throws SetupError if only some of them are set.
  static std::unique_ptr<JoiningRun> from_environment();

  JoiningRun(std::string name, std::string secret, int rank);
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
  void abort(int, const std::string&) noexcept override {}  // the starter sees it in the arena, and says it
  bool starter_alive() noexcept override;

 private:
  void connect();
  Arena ask_for_arena();
  Reply wait_for(Step step);

  std::string name_;
  std::string secret_;
  int rank_;
  std::uint64_t probe_;  // neighbours try to read this word
  std::shared_ptr<Arena> arena_;
  FileDescriptor connection_;
};

/// Joining of a process that a launcher with PMIx started: mpirun, prterun, srun. Only such jobs can span several
/// hosts. docs/modules/job.md draws the sequence.
///
/// Owns:    the connection to the launcher, and the ProcessWatch of the other ranks of this host.
class JoiningPmix final : public Joining {
 public:
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
  bool starter_reports_deaths() const noexcept override { return false; }
  void abort(int exit_status, const std::string& line) noexcept override;
  std::chrono::milliseconds abort_patience() const noexcept override { return std::chrono::seconds{2}; }
  bool starter_alive() noexcept override;

 private:
  std::chrono::seconds limit_{0};
  std::optional<pmix::Client> client_;
  std::optional<ProcessWatch> watch_;  // present if there are other ranks on this host
};

/// Exchanges addresses through the ranks' blocks, if all ranks have one arena. Throws SetupError if a rank dies
/// meanwhile, or if the address is too long.
Addresses exchange_in_arena(Arena& arena, int rank, std::span<const std::byte> address);

}  // namespace tonari::job
