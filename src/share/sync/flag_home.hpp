#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "share/coherence/heads.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>

namespace tonari::share {

/// The home's part of flags: which ranks of other hosts wait for them. Ranks of its own host watch the word.
/// docs/modules/share.md has the drawing.
///
/// It looks at the word after it has remembered, and after each share_set, which comes behind its swap: so one of the
/// two looks sees it. Who gives up says nothing: what comes late is for nobody, since its ticket is no longer that.
///
/// Threads: any.
/// Costs:   an entry for each ticket of other ranks, at most; each look goes over all of them.
class FlagHome {
 public:
  FlagHome(fabric::Engine& engine, fabric::SendQueue& send_queue) noexcept : engine_(engine), send_queue_(send_queue) {}

  /// Where the flags of this rank lie. Until then, and after close(), there are none to look at.
  void open(std::span<std::byte> places) noexcept;
  void close() noexcept;

  /// share_await or share_set.
  void receive(const fabric::Head& head) noexcept;
  /// This rank has set one.
  void look(std::uint64_t index) noexcept;
  void gone(int rank) noexcept;

  /// So many wait.
  [[nodiscard]] std::size_t waiting() noexcept;

 private:
  void tell_reached(std::uint64_t index) noexcept;  // with mutex_ held

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::mutex mutex_;  // of the next
  std::span<std::byte> places_;
  std::map<std::pair<int, std::uint32_t>, Words> waiters_;  // by rank and ticket: what was asked with it last
};

}  // namespace tonari::share
