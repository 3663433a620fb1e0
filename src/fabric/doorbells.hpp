#pragma once

#include "base/file_descriptor.hpp"
#include "job/session.hpp"

#include <chrono>
#include <cstdint>

namespace tonari::fabric {

class Network;

/// The sleep of a rank's threads: of the holder of the progress lock on the rank's doorbell, and of the service thread
/// on its own. In a rank with a network, a thread sleeps on the network's descriptor too, and on a socket that stands
/// for the doorbell meanwhile.
///
/// Threads: one per doorbell.
class Doorbells {
 public:
  /// `network`: null if there is none. Throws SetupError.
  Doorbells(job::Session& session, Network* network);

  /// Sleeps until the doorbell's value is not `seen`, until the network has something, or for `longest`.
  void sleep(job::Arena::Doorbell which, std::uint32_t seen, std::chrono::nanoseconds longest) noexcept;

 private:
  job::RankBlock& block_;
  Network* network_;
  FileDescriptor waiting_, service_;  // sockets; none if there is no network
};

}  // namespace tonari::fabric
