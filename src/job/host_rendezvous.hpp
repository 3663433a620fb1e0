#pragma once

#include "base/file_descriptor.hpp"
#include "base/settings.hpp"
#include "job/arena.hpp"
#include "job/business_card.hpp"
#include "job/handshake.hpp"
#include "job/neighbour.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tonari::job {

/// The step in which the ranks of one host get their arena, once they have each other's business cards. The lowest rank
/// makes the arena and passes its descriptor to the others with the messages of handshake.hpp. docs/modules/job.md
/// draws the sequence.
///
/// Owns:    a listening socket in the abstract namespace, opened before the other ranks learn its name so that no rank
///          connects too early; connections during the rendezvous.
/// Threads: one.
class HostRendezvous {
 public:
  /// Starts to listen under the name in `self`. Throws SetupError.
  HostRendezvous(int rank, const BusinessCard& self);
  HostRendezvous(HostRendezvous&&) = delete;  // other processes read the word probe_
  ~HostRendezvous();

  /// The result on every rank of the host.
  struct Outcome {
    std::shared_ptr<Arena> arena{};       ///< Names the processes of this host's ranks; this rank has joined it.
    bool direct_copies = false;           ///< Each rank could read the next rank's memory.
    std::vector<Neighbour> neighbours{};  ///< The other ranks of this host.
  };
  /// Runs the rendezvous, once. `here` holds the ranks of this host in order, including this one. Throws SetupError,
  /// also if one of these ranks ends meanwhile.
  Outcome meet(std::span<const BusinessCard> ranks, std::span<const int> here, const Settings& settings);

 private:
  void find_neighbours(std::span<const BusinessCard> ranks, std::span<const int> here);
  // On the lowest rank.
  void lead(int ranks);
  void make_arena(int ranks);
  void admit_next();
  void admit(FileDescriptor connection);
  void send_to_all(Step step, bool copies, int attached = -1) noexcept;
  bool all_could_copy();
  // On the other ranks.
  void follow(const BusinessCard& first);
  Reply hear(Step step, FileDescriptor* attached = nullptr);
  // On all ranks.
  void take(std::shared_ptr<Arena> arena);
  [[nodiscard]] bool try_copies() const noexcept;
  [[nodiscard]] bool wait_for(
      const FileDescriptor& connection) const;  // until it is readable; false: the time limit passed
  [[nodiscard]] int milliseconds_left() const;
  [[nodiscard]] Request request(Step step) const noexcept;

  int rank_;
  std::uint64_t probe_;  // neighbours try to read this word
  FileDescriptor listener_;
  Settings settings_;
  std::string secret_;  // digits
  std::chrono::steady_clock::time_point limit_;
  int next_ = 0;  // the rank of this host whose memory this rank tries to read
  std::vector<FileDescriptor>
      connections_;  // on the lowest rank: by neighbour; on another rank: the connection to the lowest
  std::vector<std::uint64_t> probes_;  // addresses of the neighbours' probe words
  Outcome outcome_;
};

}  // namespace tonari::job
