#pragma once

#include "fabric/head.hpp"
#include "message/heads.hpp"
#include "message/key.hpp"
#include "message/operation.hpp"
#include "message/tickets.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tonari::message {

/// A payload that arrived before its receive and was moved out of its sender's bulk memory. Replaces the Tail, only in
/// the heads of unexpected messages.
struct Kept {
  std::uint64_t bytes;
  std::byte* payload;  // from new[]; owned by the holder of the head
};

/// Returns the length of the message that a head carries or announces.
inline std::size_t message_bytes(const fabric::Head& head) noexcept {
  static_assert(offsetof(fabric::Tail, bytes) == 0 && offsetof(Announced, bytes) == 0 && offsetof(Kept, bytes) == 0);
  return head.kind == Kind::message_inline ? head.inline_bytes : head.as<std::uint64_t>();
}

/// An array that grows by chunks, so that elements keep their addresses and little unused memory is allocated.
template <class T>
class ChunkedArray {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] T& operator[](std::size_t at) noexcept { return chunks_[at / chunk][at % chunk]; }
  [[nodiscard]] const T& operator[](std::size_t at) const noexcept { return chunks_[at / chunk][at % chunk]; }
  /// Throws std::bad_alloc.
  void push_back(const T& value) {
    if (size_ == chunks_.size() * chunk) chunks_.push_back(std::make_unique_for_overwrite<T[]>(chunk));
    (*this)[size_] = value;
    ++size_;
  }
  /// Keeps the first `size` elements, and memory for at most one chunk more.
  void shrink(std::size_t size) noexcept {
    size_ = size;
    const std::size_t needed = size / chunk + 1;
    if (chunks_.size() > needed) chunks_.resize(needed);
  }
  /// Number of elements from `at` to the end of its chunk, or to the last element if that comes first.
  [[nodiscard]] std::size_t contiguous(std::size_t at) const noexcept {
    return std::min(chunk - at % chunk, size_ - at);
  }

 private:
  static constexpr std::size_t chunk = 512;
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::size_t size_ = 0;
};

/// Heads of unexpected messages in order of arrival, dense, one cache line each (LHS, section 3). A short queue is
/// searched in order by packed keys of 8 bytes, which are stored beside the heads and compared by vector instructions.
/// A long queue is searched by hash tables, one for each shape of receive that has searched it.
///
///   heads    | h0 | h1 | (taken) | h3 | h4 | ...      a head taken out of the middle leaves a hole, until there are
///   keys     | k0 | k1 |         | k3 | k4 |          more holes than heads; keys as far as a short queue reaches
///   index    places -> chains of positions, in order of arrival, doubly linked
///
/// Threads: used under the runtime's lock.
/// Costs:   64 bytes per message. While the queue is long, 8 bytes more for its links and up to 8 for its place in an
///          index.
class UnexpectedQueue {
 public:
  /// Queues of up to `scan_max` heads are searched in order.
  explicit UnexpectedQueue(std::size_t scan_max) noexcept : scan_max_(scan_max) {}
  ~UnexpectedQueue();
  UnexpectedQueue(UnexpectedQueue&&) = delete;

  /// Throws std::bad_alloc.
  void keep(const fabric::Head& head);
  /// Returns the oldest head that `receive` matches. take() removes it; the pointer of find() is valid until the queue
  /// changes.
  std::optional<fabric::Head> take(const Operation& receive) noexcept;
  const fabric::Head* find(const Operation& receive) noexcept;
  /// Returns the head that `source` announced with this ticket, or null.
  fabric::Head* find_announced(std::uint32_t source, Ticket ticket) noexcept;
  /// Removes that head. Returns false if it is not there.
  bool forget_announced(std::uint32_t source, Ticket ticket) noexcept;
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  using Position = std::uint32_t;
  static constexpr Position none = ~Position{0};

  /// Index of the heads by key, for receives of one shape.
  class Index {
   public:
    [[nodiscard]] bool built() const noexcept { return !places_.empty(); }
    // Both leave the index unbuilt if there is no memory for it.
    void build(const UnexpectedQueue& queue, std::size_t shape) noexcept;
    void add(const UnexpectedQueue& queue, Position position, std::size_t shape) noexcept;
    void drop() noexcept;
    void remove(Position position, const Key& key) noexcept;
    [[nodiscard]] Position find(const UnexpectedQueue& queue, const Key& key, std::size_t shape) const noexcept;

   private:
    struct Links {
      Position previous;  // for the first of a chain: the last
      Position next;
    };
    void append(Position position, const Key& key) noexcept;

    int shift_ = 64;
    std::size_t count_ = 0;
    std::vector<Position> places_;  // the first position of each chain
    ChunkedArray<Links> links_;     // by position
  };

  [[nodiscard]] Position search(const Operation& receive) noexcept;
  [[nodiscard]] Position scan(const Operation& receive) const noexcept;
  [[nodiscard]] std::size_t skip(std::size_t at, const Key& key, std::size_t shape) const noexcept;
  void remove(Position position) noexcept;
  void close_holes() noexcept;
  [[nodiscard]] bool is_long() const noexcept { return heads_.size() - first_ > 2 * scan_max_ || count_ > scan_max_; }
  void note_announced(Position position);

  static constexpr std::size_t holes_worth_closing = 64;

  const std::size_t scan_max_;
  const std::size_t keys_max_ =
      2 * scan_max_ + holes_worth_closing + 2;  // number of heads, with holes, that a short queue can have
  ChunkedArray<fabric::Head> heads_;            // kind 0 marks a hole
  ChunkedArray<std::uint64_t> keys_;            // of the first keys_max_ heads
  std::size_t first_ = 0;                       // all positions before it are holes
  std::size_t count_ = 0;
  std::array<Index, shapes> indexes_;
  ByTicket<Position>
      announced_;  // the last position announced with each ticket; the head there tells whether it is still valid
};

}  // namespace tonari::message
