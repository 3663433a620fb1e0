#pragma once

#include "window/state/window_state.hpp"

#include <tonari/window.hpp>

#include <cstddef>
#include <memory>

namespace tonari::window {

/// Copies of this rank's part of a window to the same place in another rank's, without its help and without waiting: by
/// key (window/remote/rdma_keys.hpp) to another host, and at once where the part is mapped.
///
/// Of a window of tonari's memory in which all ranks have as many bytes, and all rights.
/// Threads: one at a time. Costs: no copy in memory; to another host a put and a flush.
class Put {
 public:
  explicit Put(const Window& window) noexcept : access_(window.access_) {}
  Put(Put&&) = delete;
  /// Waits for what is under way.
  ~Put();

  /// Asks other hosts for their parts' keys, which takes a head there and one back for each rank. False: not all can be
  /// had. Once, before the rest, with nothing held.
  bool open() noexcept;
  /// Begins. Nothing else must be under way. The bytes stay as they are until end() answers.
  void start(int rank) noexcept;
  [[nodiscard]] bool is_under_way() const noexcept { return key_ != nullptr; }
  /// Answers again while it is under way; then ok: it is there; peer_gone: that rank has died or freed its part;
  /// no_memory.
  Status end() noexcept;

 private:
  [[nodiscard]] bool has_landed() const noexcept;

  std::shared_ptr<WindowState> access_;
  PartKey* key_ = nullptr;  // in use
  Status status_ = Status::ok;
  fabric::Landing put_;
  fabric::Landing flushed_;
};

}  // namespace tonari::window
