#pragma once

#include "message/key.hpp"
#include "message/operation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tonari::message {

/// Posted receives. A hash table a shape, whose chains run through the operations themselves in order of posting; a
/// head looks into those that are not empty, and the earliest number wins.
///
/// Threads: under the runtime's lock.
/// Costs:   16 bytes a receive beside the operation; a match costs a hash and a chain for each shape in use, whatever
///          else is posted.
class PostedQueue {
 public:
  void post(Operation& operation) noexcept;
  void withdraw(Operation& operation) noexcept;
  /// The oldest that takes `head`, withdrawn; null when there is none.
  Operation* take(const fabric::Head& head) noexcept;
  /// Calls `visit(Operation&)` for each; it may withdraw the one it is given.
  template <class Visit>
  void for_each(Visit&& visit) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  class Table {
   public:
    void add(Operation& operation) noexcept;
    void remove(Operation& operation) noexcept;
    [[nodiscard]] Operation* find(const Key& key) const noexcept;
    Operation* take(const Key& key) noexcept;
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    template <class Visit>
    void for_each(Visit&& visit) noexcept {
      for (std::size_t place = 0; place < places_; ++place) {
        for (Operation* each = chains()[place].front(); each != nullptr;) {
          Operation* const next = each->next;
          visit(*each);
          each = next;
        }
      }
    }

   private:
    static constexpr std::size_t few = 16;
    [[nodiscard]] OperationList& chain(const Key& key) noexcept { return chains()[key.hash() >> shift_]; }
    [[nodiscard]] OperationList* chains() noexcept { return many_ ? many_.get() : few_.data(); }
    void grow() noexcept;

    std::size_t places_ = few;
    int shift_ = 64 - 4;
    std::size_t count_ = 0;
    std::array<OperationList, few> few_;
    std::unique_ptr<OperationList[]> many_;  // instead of few_, once there are more
  };

  [[gnu::noinline]] Operation* take_oldest(const fabric::Head& head) noexcept;

  std::array<Table, shapes> tables_;
  std::size_t count_ = 0;
  std::uint64_t next_number_ = 0;
};

template <class Visit>
void PostedQueue::for_each(Visit&& visit) noexcept {
  for (Table& table : tables_) table.for_each(visit);
}

}  // namespace tonari::message
