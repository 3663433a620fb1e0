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

/// The home's part of flags: the ranks of other hosts that wait for them. Ranks of its own host watch the word.
/// docs/modules/share.md has the drawing.
///
/// The home reads the word after it has stored a waiter, and after each share_set, which arrives after the swap of the
/// word: so one of the two reads sees the new value. A rank that stops waiting sends nothing: a late reply finds no
/// ticket.
///
/// Threads: any.
/// Costs:   at most one entry per ticket of other ranks; each read goes over all entries.
class FlagHome {
 public:
  FlagHome(fabric::Engine& engine, fabric::SendQueue& send_queue) noexcept : engine_(engine), send_queue_(send_queue) {}

  /// Sets the memory of this rank's flags. Before it, and after close(), no flag is read.
  void open(std::span<std::byte> slots) noexcept;
  void close() noexcept;

  /// Handles share_await or share_set.
  void receive(const fabric::Head& head) noexcept;
  /// Called when this rank has set a flag.
  void look(std::uint64_t index) noexcept;
  void gone(int rank) noexcept;

  /// Returns the number of waiting requests.
  [[nodiscard]] std::size_t waiting() noexcept;

 private:
  void tell_reached(std::uint64_t index) noexcept;  // with mutex_ held

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  std::mutex mutex_;  // protects the rest
  std::span<std::byte> slots_;
  std::map<std::pair<int, std::uint32_t>, Words> waiters_;  // by rank and ticket: the last request with it
};

}  // namespace tonari::share
