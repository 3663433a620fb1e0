#pragma once

#include "fabric/transfer.hpp"
#include "message/heads.hpp"

#include <cstdint>
#include <new>
#include <optional>
#include <vector>

namespace tonari::message {

// Tickets name announced payloads. Each ticket below fabric::tickets_max has a TransferMemory, through which both sides
// share the copying. When these are in use, messages take tickets above, which are only names: one side copies
// alone. So early announcements never prevent later ones, however many wait for their receives.
// Collectives take only tickets with a TransferMemory, because they may have to withdraw an announcement, which needs
// it. Some of these tickets are reserved for collectives; they become free without a user's receive.
inline constexpr std::uint32_t tickets_in_all = 1 << 20;
inline constexpr unsigned tickets_for_collectives = 64;
constexpr bool has_transfer(Ticket ticket) noexcept { return ticket.index < fabric::tickets_max; }

struct Operation;

/// Sends by ticket.
///
/// Threads: used under the runtime's lock.
class OutgoingTable {
 public:
  /// Returns null if no send has this ticket, or if there is no such ticket.
  [[nodiscard]] Operation* find(std::uint32_t index) const noexcept {
    return index < operations_.size() ? operations_[index] : nullptr;
  }
  void set(std::uint32_t index, Operation* operation) noexcept { operations_[index] = operation; }

  /// Takes a ticket without a TransferMemory. Empty if all are in use or there is no memory for another.
  std::optional<Ticket> take() noexcept {
    if (free_.empty()) {
      if (operations_.size() == tickets_in_all) return std::nullopt;
      try {
        if (free_.capacity() <= generations_.size())
          free_.reserve(2 * generations_.size() + 64);  // so that give_back() cannot fail
        generations_.resize(operations_.size() + 1 - fabric::tickets_max);
        operations_.push_back(nullptr);
      } catch (const std::bad_alloc&) {
        return std::nullopt;
      }
      free_.push_back(static_cast<std::uint32_t>(operations_.size() - 1));
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return Ticket{index, ++generations_[index - fabric::tickets_max]};
  }
  void give_back(std::uint32_t index) noexcept { free_.push_back(index); }

  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (Operation* const each : operations_) {
      if (each != nullptr) visit(*each);
    }
  }

 private:
  std::vector<Operation*> operations_ = std::vector<Operation*>(fabric::tickets_max);
  std::vector<std::uint32_t> generations_;  // of the tickets without a TransferMemory
  std::vector<std::uint32_t> free_;         // free tickets without a TransferMemory
};

/// A table of values by peer and index of a ticket.
template <class T>
class ByTicket {
 public:
  /// Returns null if at() was never called for this place.
  [[nodiscard]] T* find(std::uint32_t source, std::uint32_t index) noexcept {
    const bool known = source < by_source_.size() && index < by_source_[source].size();
    return known ? &by_source_[source][index] : nullptr;
  }
  /// Returns the value for an index below tickets_in_all. Throws std::bad_alloc.
  T& at(std::uint32_t source, std::uint32_t index) {
    if (by_source_.size() <= source) by_source_.resize(source + 1);
    if (by_source_[source].size() <= index) by_source_[source].resize(index + 1);
    return by_source_[source][index];
  }
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (auto& tickets : by_source_) {
      for (T& each : tickets) visit(each);
    }
  }

 private:
  std::vector<std::vector<T>> by_source_;
};

}  // namespace tonari::message
