#pragma once

#include "message/key.hpp"
#include "message/operation_list.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace tonari::message {

/// Posted receives, in one hash table per shape. The chains run through the operations themselves, in order of posting.
/// A head is looked up in each table that is not empty; the match with the lowest number wins.
///
/// Threads: used under the runtime's lock.
/// Costs:   16 bytes per receive beside the operation. A match costs one hash and one chain per shape in use, however
///          many receives are posted.
class PostedQueue {
 public:
  void post(Operation& operation) noexcept;
  void withdraw(Operation& operation) noexcept;
  /// Withdraws and returns the oldest receive that matches `head`; null if there is none.
  Operation* take(const fabric::Head& head) noexcept;
  /// Calls `visit(Operation&)` for each; it may withdraw its argument.
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
          Operation* const next = each->links.next;
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
    std::unique_ptr<OperationList[]> many_;  // replaces few_ when there are more
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
