#pragma once

#include "fabric/engine.hpp"

#include <mutex>
#include <vector>

namespace tonari::fabric {

/// Sends heads for which no thread waits. Heads to one rank and lane are sent in order, at once or when there is room
/// again. Heads to a dead rank are dropped.
///
/// Threads: any.
/// Costs:   a lock and a send; allocates if there is no room.
class SendQueue {
 public:
  explicit SendQueue(Engine& engine) noexcept : engine_(engine), held_back_(engine.handlers()) {}

  void post(int peer, const Head& head, Lane lane) noexcept;
  /// Sends the waiting heads for which there is room.
  void retry() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return held_back_.is_zero(); }

 private:
  struct Waiting {
    int peer;
    Lane lane;
    Head head;
  };
  bool send(const Waiting& each) noexcept;

  Engine& engine_;
  std::mutex mutex_;  // guards the next two
  std::vector<Waiting> waiting_;
  HeldBack held_back_;
};

}  // namespace tonari::fabric
