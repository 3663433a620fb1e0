#pragma once

#include "window/state/window_state.hpp"

#include <tonari/window.hpp>

#include <cstddef>
#include <memory>

namespace tonari::window {

/// Copies this rank's part of a window to the same place in another rank's part, without that rank's help and without
/// waiting. Copies to another host use the key (window/remote/rdma_keys.hpp); a mapped part is written at once.
///
/// The window must be in tonari's memory, with the same number of bytes and all rights for all ranks.
///
/// Threads: one at a time.
/// Costs:   no copy in memory; to another host, one put and one flush.
class Put {
 public:
  explicit Put(const Window& window) noexcept : state_(WindowState::share(window)) {}
  Put(Put&&) = delete;
  /// Waits for the copy that is under way.
  ~Put();

  /// Asks other hosts for their parts' keys: one head each way per rank. Returns false if a key is missing. Call it
  /// once, before the other calls, with no lock held.
  bool open() noexcept;
  /// Starts a copy. No other copy may be under way. The part must stay unchanged until end() returns another status
  /// than again.
  void start(int rank) noexcept;
  [[nodiscard]] bool is_under_way() const noexcept { return key_ != nullptr; }
  /// Returns again while the copy is under way; then ok if it is complete, peer_gone if the rank has died or freed its
  /// part, or no_memory.
  Status end() noexcept;

 private:
  [[nodiscard]] bool has_landed() const noexcept;

  std::shared_ptr<WindowState> state_;
  PartKey* key_ = nullptr;  // the key in use
  Status status_ = Status::ok;
  fabric::Landing put_;
  fabric::Landing flushed_;
};

}  // namespace tonari::window
