#include "message/unexpected.hpp"

#include "message/looks.hpp"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace tonari::message {

using fabric::Head;

namespace {

constexpr fabric::HeadKind hole{};
constexpr std::uint64_t key_of_hole = ~std::uint64_t{0};  // larger than any tag

// Packs a key into 64 bits. Different packed keys mean different keys; equal ones must be compared again. Wildcards are
// masked out.
constexpr std::uint64_t pack(const Key& key) noexcept {
  return std::uint64_t{key.context} << 48 | (std::uint64_t{key.source} & 0xffff) << 32 | key.tag;
}
constexpr std::uint64_t mask_of(std::size_t shape) noexcept {
  return pack({~0U, (shape & any_source_shape) != 0 ? 0 : ~0U, (shape & any_tag_shape) != 0 ? 0 : ~0U});
}

// Returns the index of the first of `count` keys that equals `wanted` under `mask`, or count.
std::size_t first_equal(const std::uint64_t* keys, std::size_t count, std::uint64_t wanted,
                        std::uint64_t mask) noexcept {
  constexpr std::size_t block = 16;
  std::size_t at = 0;
  for (; at + block <= count; at += block) {
    std::uint64_t equal = 0;  // a reduction that the compiler vectorises
    for (std::size_t i = 0; i < block; ++i) equal |= ((keys[at + i] ^ wanted) & mask) == 0 ? ~std::uint64_t{0} : 0;
    if (equal != 0) break;
  }
  while (at < count && ((keys[at] ^ wanted) & mask) != 0) ++at;
  return at;
}

}  // namespace

UnexpectedQueue::~UnexpectedQueue() {
  for (std::size_t at = first_; at < heads_.size(); ++at) {
    if (heads_[at].kind == Kind::kept) delete[] heads_[at].as<Kept>().payload;
  }
}

void UnexpectedQueue::keep(const Head& head) {
  const auto position = static_cast<Position>(heads_.size());
  heads_.push_back(head);
  if (position < keys_max_) keys_.push_back(pack(key_of(head, exact)));
  ++count_;
  if (head.kind == Kind::message_announced) note_announced(position);
  for (std::size_t shape = 0; shape < shapes; ++shape) {
    if (indexes_[shape].built()) indexes_[shape].add(*this, position, shape);
  }
  if (is_long() && !indexes_[exact].built())
    indexes_[exact].build(*this, exact);  // here, so that a later search does not have to build it all
}

UnexpectedQueue::Position UnexpectedQueue::search(const Operation& receive) noexcept {
  if (count_ == 0) return none;
  const std::size_t shape = shape_of(receive);
  Index& index = indexes_[shape];
  if (!index.built() && is_long()) index.build(*this, shape);
  return index.built() ? index.find(*this, key_of(receive), shape) : scan(receive);
}

// Returns the first position from `at` on that may hold `key`. If there are no keys (a long queue without memory for an
// index), returns `at`.
std::size_t UnexpectedQueue::skip(std::size_t at, const Key& key, std::size_t shape) const noexcept {
  const std::uint64_t mask = mask_of(shape);
  while (at < keys_.size()) {
    const std::size_t count = keys_.contiguous(at);
    const std::size_t found = first_equal(&keys_[at], count, pack(key) & mask, mask);
    queue_looks.add(found);
    at += found;
    if (found != count) break;
  }
  return at;
}

UnexpectedQueue::Position UnexpectedQueue::scan(const Operation& receive) const noexcept {
  const std::size_t shape = shape_of(receive);
  const Key key = key_of(receive);
  for (std::size_t at = skip(first_, key, shape); at < heads_.size(); at = skip(at + 1, key, shape)) {
    queue_looks.add();
    if (heads_[at].kind != hole && key_of(heads_[at], shape) == key) return static_cast<Position>(at);
  }
  return none;
}

const Head* UnexpectedQueue::find(const Operation& receive) noexcept {
  const Position position = search(receive);
  return position == none ? nullptr : &heads_[position];
}

std::optional<Head> UnexpectedQueue::take(const Operation& receive) noexcept {
  const Position position = search(receive);
  if (position == none) return std::nullopt;
  const Head head = heads_[position];
  remove(position);
  return head;
}

void UnexpectedQueue::remove(Position position) noexcept {
  for (std::size_t shape = 0; shape < shapes; ++shape) {
    if (indexes_[shape].built()) indexes_[shape].remove(position, key_of(heads_[position], shape));
  }
  heads_[position].kind = hole;
  if (position < keys_.size()) keys_[position] = key_of_hole;
  --count_;
  if (count_ == 0) {
    for (Index& index : indexes_) index.drop();
    heads_.shrink(0);
    keys_.shrink(0);
    first_ = 0;
    return;
  }
  while (heads_[first_].kind == hole) ++first_;
  if (heads_.size() - count_ > count_ + holes_worth_closing) close_holes();
}

void UnexpectedQueue::close_holes() noexcept {
  queue_looks.add(heads_.size() - first_);
  std::size_t to = 0;
  for (std::size_t at = first_; at < heads_.size(); ++at) {
    if (heads_[at].kind == hole) continue;
    heads_[to] = heads_[at];
    if (to < keys_.size()) keys_[to] = pack(key_of(heads_[to], exact));
    if (heads_[to].kind == Kind::message_announced) note_announced(static_cast<Position>(to));
    ++to;
  }
  heads_.shrink(to);
  keys_.shrink(std::min(to, keys_.size()));
  first_ = 0;
  for (Index& index : indexes_) index.drop();  // rebuilt by the next search if the queue is still long
}

void UnexpectedQueue::note_announced(Position position) {
  const Head& head = heads_[position];
  const std::uint32_t index = head.as<Announced>().ticket.index;
  if (index < tickets_in_all) announced_.at(head.source, index) = position;  // otherwise the head is malformed
}

Head* UnexpectedQueue::find_announced(std::uint32_t source, Ticket ticket) noexcept {
  const Position* const position = announced_.find(source, ticket.index);
  if (position == nullptr || *position >= heads_.size()) return nullptr;
  Head& head = heads_[*position];
  if (head.kind != Kind::message_announced || head.source != source) return nullptr;
  const auto announced = head.as<Announced>().ticket;
  return announced.index == ticket.index && announced.generation == ticket.generation ? &head : nullptr;
}

bool UnexpectedQueue::forget_announced(std::uint32_t source, Ticket ticket) noexcept {
  if (find_announced(source, ticket) == nullptr) return false;
  remove(*announced_.find(source, ticket.index));
  return true;
}

// Index

void UnexpectedQueue::Index::build(const UnexpectedQueue& queue, std::size_t shape) noexcept {
  const std::size_t places = std::bit_ceil(queue.count_ + 1);
  try {
    places_.assign(places, none);
    while (links_.size() < queue.heads_.size()) links_.push_back({none, none});
  } catch (const std::bad_alloc&) {
    return drop();
  }
  shift_ = 64 - std::countr_zero(places);
  count_ = 0;
  queue_looks.add(queue.heads_.size() - queue.first_);
  for (std::size_t at = queue.first_; at < queue.heads_.size(); ++at) {
    if (queue.heads_[at].kind != hole) append(static_cast<Position>(at), key_of(queue.heads_[at], shape));
  }
}

void UnexpectedQueue::Index::drop() noexcept {
  places_ = std::vector<Position>();  // `= {}` would keep its memory
  links_.shrink(0);
}

void UnexpectedQueue::Index::add(const UnexpectedQueue& queue, Position position, std::size_t shape) noexcept {
  if (count_ == 2 * places_.size()) return build(queue, shape);
  try {
    links_.push_back({none, none});
  } catch (const std::bad_alloc&) {
    return drop();
  }
  append(position, key_of(queue.heads_[position], shape));
}

void UnexpectedQueue::Index::append(Position position, const Key& key) noexcept {
  Position& first = places_[key.hash() >> shift_];
  if (first == none) {
    first = position;
    links_[position] = {position, none};
  } else {
    const Position last = std::exchange(links_[first].previous, position);
    links_[last].next = position;
    links_[position] = {last, none};
  }
  ++count_;
}

void UnexpectedQueue::Index::remove(Position position, const Key& key) noexcept {
  const Links links = links_[position];
  Position& first = places_[key.hash() >> shift_];
  (position == first ? first : links_[links.previous].next) = links.next;
  // The next head of the chain, or the first head if this was the last, links back to the previous one.
  const Position follower = links.next != none ? links.next : first;
  if (follower != none) links_[follower].previous = links.previous;
  --count_;
}

UnexpectedQueue::Position UnexpectedQueue::Index::find(const UnexpectedQueue& queue, const Key& key,
                                                       std::size_t shape) const noexcept {
  for (Position at = places_[key.hash() >> shift_]; at != none; at = links_[at].next) {
    queue_looks.add();
    if (key_of(queue.heads_[at], shape) == key) return at;
  }
  return none;
}

}  // namespace tonari::message
