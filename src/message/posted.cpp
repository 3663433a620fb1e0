#include "message/posted.hpp"

#include "message/looks.hpp"

#include <new>

namespace tonari::message {

namespace {

Operation* first_in(const OperationList& list, const Key& key) noexcept {
  for (Operation* each = list.front(); each != nullptr; each = each->links.next) {
    queue_looks.add();
    if (key_of(*each) == key) return each;
  }
  return nullptr;
}

}  // namespace

void PostedQueue::Table::add(Operation& operation) noexcept {
  if (count_ == places_) grow();
  chain(key_of(operation)).push_back(operation);
  ++count_;
}

void PostedQueue::Table::remove(Operation& operation) noexcept {
  chain(key_of(operation)).remove(operation);
  --count_;
}

Operation* PostedQueue::Table::find(const Key& key) const noexcept {
  return first_in(const_cast<Table*>(this)->chain(key), key);
}

// Hashes only once.
Operation* PostedQueue::Table::take(const Key& key) noexcept {
  OperationList& list = chain(key);
  Operation* const found = first_in(list, key);
  if (found == nullptr) return nullptr;
  list.remove(*found);
  --count_;
  return found;
}

// Without memory for more places the chains grow instead.
void PostedQueue::Table::grow() noexcept {
  std::unique_ptr<OperationList[]> wider(new (std::nothrow) OperationList[places_ * 2]);
  if (wider == nullptr) return;
  // A chain is divided between two places, so the elements of each keep their order.
  queue_looks.add(count_);
  for_each([&](Operation& each) { wider[key_of(each).hash() >> (shift_ - 1)].push_back(each); });
  places_ *= 2;
  --shift_;
  many_ = std::move(wider);
}

void PostedQueue::post(Operation& operation) noexcept {
  operation.links.number = next_number_++;
  tables_[shape_of(operation)].add(operation);
  ++count_;
}

void PostedQueue::withdraw(Operation& operation) noexcept {
  tables_[shape_of(operation)].remove(operation);
  --count_;
}

Operation* PostedQueue::take(const fabric::Head& head) noexcept {
  if (count_ == 0) return nullptr;
  if (tables_[exact].size() == count_) [[likely]] {
    Operation* const found = tables_[exact].take(key_of(head, exact));
    count_ -= found != nullptr ? 1 : 0;
    return found;
  }
  return take_oldest(head);
}

// For use when receives with wildcards are posted.
Operation* PostedQueue::take_oldest(const fabric::Head& head) noexcept {
  Operation* oldest = nullptr;
  for (std::size_t shape = 0; shape < shapes; ++shape) {
    if (tables_[shape].size() == 0) continue;
    Operation* const found = tables_[shape].find(key_of(head, shape));
    if (found != nullptr && (oldest == nullptr || found->links.number < oldest->links.number)) oldest = found;
  }
  if (oldest != nullptr) withdraw(*oldest);
  return oldest;
}

}  // namespace tonari::message
