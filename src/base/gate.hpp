#pragma once

#include <atomic>
#include <cstdint>

namespace tonari {

/// Threads pass through a gate to do something that another thread forbids for a while. That thread closes the gate,
/// and waits until it is_empty(): from then on nobody is inside until it opens the gate again. Everyone waits in its
/// own way.
///
/// Threads: any may enter; one at a time closes and opens.
/// Costs:   two atomic additions to pass.
class Gate {
 public:
  /// Returns false if the gate is closed. Otherwise the caller is inside until it calls leave().
  [[nodiscard]] bool try_enter() noexcept {
    // (1) seq_cst orders the addition before the load; close() and is_empty() store and load in the opposite order (2).
    // So at least one of the two threads sees the other.
    inside_.fetch_add(1, std::memory_order_seq_cst);
    if (!closed_.load(std::memory_order_seq_cst)) return true;
    leave();
    return false;
  }
  /// Release: a thread that finds the gate empty sees all that was done inside.
  void leave() noexcept { inside_.fetch_sub(1, std::memory_order_release); }

  void close() noexcept { closed_.store(true, std::memory_order_seq_cst); }  // (2)
  /// Only while the gate is closed.
  [[nodiscard]] bool is_empty() const noexcept { return inside_.load(std::memory_order_seq_cst) == 0; }
  /// Release: a thread that enters sees all that was done meanwhile.
  void open() noexcept { closed_.store(false, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<bool> closed_{false};
};

/// Is inside of the gate, if that is possible, until the end of its scope.
class Passage {
 public:
  explicit Passage(Gate& gate) noexcept : gate_(gate.try_enter() ? &gate : nullptr) {}
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;
  ~Passage() {
    if (gate_ != nullptr) gate_->leave();
  }
  [[nodiscard]] bool is_inside() const noexcept { return gate_ != nullptr; }

 private:
  Gate* gate_;
};

}  // namespace tonari
