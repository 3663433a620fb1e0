#pragma once

#include "fabric/engine.hpp"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace tonari::fabric {

/// Heads that nobody waits to have sent. Those to one rank go in their order, at once or when there is room again;
/// those to a rank that is gone are dropped.
///
/// Threads: any.
/// Costs:   a lock and a send; allocates where there is no room.
class SendQueue {
 public:
  explicit SendQueue(Engine& engine) noexcept : engine_(engine) {}

  void post(int peer, const Head& head, Lane lane) noexcept;
  /// Sends what there is room for.
  void retry() noexcept;
  [[nodiscard]] bool is_empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }  // retried

 private:
  struct Waiting {
    int peer;
    Lane lane;
    Head head;
  };
  bool send(const Waiting& each) noexcept;

  Engine& engine_;
  std::mutex mutex_;  // of the next
  std::vector<Waiting> waiting_;
  std::atomic<std::size_t> count_{0};
};

}  // namespace tonari::fabric
