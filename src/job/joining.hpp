#pragma once

#include "base/file_descriptor.hpp"
#include "job/handshake.hpp"
#include "job/session.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace tonari::job {

/// A process that nobody started in a special way: a job of one.
class JoiningAlone final : public Joining {
 public:
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
};

/// A process under `tonari run`, however many wrappers lie between. docs/job.md draws the sequence.
///
/// Owns: the connection, which stays open until the rank has left: each side learns from it that the other is gone.
class JoiningRun final : public Joining {
 public:
  /// One, when the environment says that `tonari run` started this process; else nothing. Throws SetupError when the
  /// environment says it only in part.
  static std::unique_ptr<JoiningRun> if_started_so();

  JoiningRun(std::string name, std::string secret, int rank);
  Membership join(const Settings& settings) override;
  Addresses exchange(std::span<const std::byte> address) override;
  bool starter_alive() noexcept override;

 private:
  void connect();
  Arena ask_for_arena();
  Reply wait_for(Step step);
  bool can_copy_from_neighbour(const Arena& arena) const noexcept;

  std::string name_;
  std::string secret_;
  int rank_;
  std::uint64_t probe_;  // neighbours try to read it
  std::shared_ptr<Arena> arena_;
  FileDescriptor connection_;
};

/// Exchanges addresses by the ranks' blocks, where all ranks have one arena. Throws SetupError when a rank dies
/// meanwhile, or the address is too long.
Addresses exchange_in_arena(Arena& arena, int rank, std::span<const std::byte> address);

}  // namespace tonari::job
