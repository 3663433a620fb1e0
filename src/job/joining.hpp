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

/// A process that nobody started in a special way: a job of one.
class JoiningAlone final : public Joining {
 public:
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
};

/// A process under `tonari run`, however many wrappers lie between. docs/modules/job.md draws the sequence.
///
/// Owns: the connection, which stays open until the rank has left: each side learns from it that the other is gone.
class JoiningRun final : public Joining {
 public:
  /// Where the environment says that `tonari run` started this process. Throws SetupError when it says so only in part.
  static std::unique_ptr<JoiningRun> from_environment();

  JoiningRun(std::string name, std::string secret, int rank);
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
  bool starter_alive() noexcept override;

 private:
  void connect();
  Arena ask_for_arena();
  Reply wait_for(Step step);

  std::string name_;
  std::string secret_;
  int rank_;
  std::uint64_t probe_;  // neighbours try to read it
  std::shared_ptr<Arena> arena_;
  FileDescriptor connection_;
};

/// A process that a launcher with PMIx started: mpirun, prterun, srun. The one way for a job to span hosts;
/// docs/modules/job.md draws the sequence.
///
/// Owns: the connection to the launcher, and the watch over the other ranks of this host.
class JoiningPmix final : public Joining {
 public:
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
  bool starter_reports_deaths() const noexcept override { return false; }
  bool starter_alive() noexcept override;

 private:
  std::chrono::seconds limit_{0};
  std::optional<pmix::Client> client_;
  std::optional<ProcessWatch> watch_;  // where other ranks are on this host
};

/// Exchanges addresses by the ranks' blocks, where all ranks have one arena. Throws SetupError when a rank dies
/// meanwhile, or the address is too long.
Addresses exchange_in_arena(Arena& arena, int rank, std::span<const std::byte> address);

}  // namespace tonari::job
