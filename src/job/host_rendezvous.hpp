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

/// How the ranks of one host get one arena, once they know of each other. The lowest of them makes it and hands it
/// over, in the words of handshake.hpp; docs/modules/job.md draws the sequence.
///
/// Owns:    a socket in the abstract namespace, from before the others know its name, so that nobody comes too early;
///          while they meet, connections.
/// Threads: one.
class HostRendezvous {
 public:
  /// Listens, as the rank that introduces itself so. Throws SetupError.
  HostRendezvous(int rank, const BusinessCard& self);
  HostRendezvous(HostRendezvous&&) = delete;  // another process reads a word of it
  ~HostRendezvous();

  /// What all ranks of a host have in the end.
  struct Outcome {
    std::shared_ptr<Arena> arena{};       ///< Has the processes of this host's ranks, and this rank as joined.
    bool direct_copies = false;           ///< Each could read the next one's memory.
    std::vector<Neighbour> neighbours{};  ///< The other ranks of this host.
  };
  /// `here` are the ranks of this host in order, this one among them. Once. Throws SetupError, also when one of them
  /// ends meanwhile.
  Outcome meet(std::span<const BusinessCard> ranks, std::span<const int> here, const Settings& settings);

 private:
  void find_neighbours(std::span<const BusinessCard> ranks, std::span<const int> here);
  // The lowest rank.
  void lead(int ranks);
  void make_arena(int ranks);
  void admit_next();
  void admit(FileDescriptor connection);
  void send_to_all(Step step, bool copies, int attached = -1) noexcept;
  bool all_could_copy();
  // The others.
  void follow(const BusinessCard& first);
  Reply hear(Step step, FileDescriptor* attached = nullptr);
  // All.
  void take(std::shared_ptr<Arena> arena);
  [[nodiscard]] bool try_copies() const noexcept;
  [[nodiscard]] bool wait_for(const FileDescriptor& connection) const;  // until it can be read; false: too late
  [[nodiscard]] int milliseconds_left() const;
  [[nodiscard]] Request request(Step step) const noexcept;

  int rank_;
  std::uint64_t probe_;  // neighbours try to read it
  FileDescriptor listener_;
  Settings settings_;
  std::string secret_;  // digits
  std::chrono::steady_clock::time_point limit_;
  int next_ = 0;                             // the rank of this host whose memory this one tries to read
  std::vector<FileDescriptor> connections_;  // the lowest rank's, by neighbour; another's, to the lowest
  std::vector<std::uint64_t> probes_;        // where the neighbours' probe words lie
  Outcome outcome_;
};

}  // namespace tonari::job
