#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

// Ranks and tags are types of their own, so that a rank of the job passed for a rank of a communicator, or a tag and a
// rank in the wrong order, do not compile. They cost what an int costs.
//
//   world.send(value, Rank{1}, Tag{7});
//   for (const Rank peer : world.ranks()) ...
//   const Rank right = world.neighbour(+1);
//   if (world.rank() == 0) ...
namespace tonari {

// A namespace of its own, so that argument-dependent lookup of a rank finds nothing else of detail.
namespace detail::rank {

/// The common part of Rank and JobRank: an int that counts positions. Comparisons with integers, differences, and
/// steps by an integer work as with an iterator; a conversion to or from an integer must be written out.
template <class Self>
class Position {
 public:
  constexpr Position() noexcept = default;
  /// A number that is no int becomes a rank that no job has: calls return Status::invalid.
  explicit constexpr Position(std::integral auto value) noexcept
      : value_(std::in_range<int>(value) ? static_cast<int>(value) : std::numeric_limits<int>::min()) {}

  [[nodiscard]] constexpr int value() const noexcept { return value_; }
  /// For arrays with one element per rank.
  [[nodiscard]] constexpr std::size_t index() const noexcept { return static_cast<std::size_t>(value_); }

  friend constexpr bool operator==(Self left, Self right) noexcept { return left.value() == right.value(); }
  friend constexpr auto operator<=>(Self left, Self right) noexcept { return left.value() <=> right.value(); }
  friend constexpr bool operator==(Self left, std::integral auto right) noexcept {
    return std::cmp_equal(left.value(), right);
  }
  friend constexpr std::strong_ordering operator<=>(Self left, std::integral auto right) noexcept {
    if (std::cmp_equal(left.value(), right)) return std::strong_ordering::equal;
    return std::cmp_less(left.value(), right) ? std::strong_ordering::less : std::strong_ordering::greater;
  }

  friend constexpr Self operator+(Self left, int right) noexcept { return Self(left.value() + right); }
  friend constexpr Self operator-(Self left, int right) noexcept { return Self(left.value() - right); }
  friend constexpr int operator-(Self left, Self right) noexcept { return left.value() - right.value(); }
  /// The remainder is never negative: (rank - 1) % size is the rank before, round the end.
  friend constexpr Self operator%(Self left, int right) noexcept {
    const int remainder = left.value() % right;
    return Self(remainder < 0 ? remainder + right : remainder);
  }
  constexpr Self& operator++() noexcept {
    ++value_;
    return static_cast<Self&>(*this);
  }
  constexpr Self& operator--() noexcept {
    --value_;
    return static_cast<Self&>(*this);
  }

  friend std::string to_string(Self rank) { return std::to_string(rank.value()); }
  template <class Stream>
  requires requires { typename Stream::traits_type; }
  friend Stream& operator<<(Stream& stream, Self rank) {
    stream << rank.value();
    return stream;
  }

 private:
  int value_ = 0;
};

}  // namespace detail::rank

/// A rank of a communicator: a position from 0 to Communicator::size() - 1.
class Rank : public detail::rank::Position<Rank> {
 public:
  using Position::Position;
  static const Rank any;  ///< Receives and probes: whichever rank sent the message.
};
inline constexpr Rank Rank::any{-1};

/// A rank of the whole job, from 0 to Job::size() - 1: what windows, addresses and shared arrays name. A communicator
/// may have fewer ranks, in another order; Communicator::job_rank and Group convert.
class JobRank : public detail::rank::Position<JobRank> {
 public:
  using Position::Position;
};

/// A number that a sender writes on a message and a receiver selects by, from 0 to Tag::max.
class Tag {
 public:
  constexpr Tag() noexcept = default;
  explicit constexpr Tag(std::integral auto value) noexcept : value_(static_cast<int>(value)) {}
  static const Tag any;  ///< Receives and probes: whatever the tag.
  static const Tag max;

  [[nodiscard]] constexpr int value() const noexcept { return value_; }

  friend constexpr bool operator==(Tag, Tag) noexcept = default;
  friend constexpr auto operator<=>(Tag, Tag) noexcept = default;
  friend constexpr bool operator==(Tag left, std::integral auto right) noexcept {
    return std::cmp_equal(left.value(), right);
  }
  friend constexpr std::strong_ordering operator<=>(Tag left, std::integral auto right) noexcept {
    if (std::cmp_equal(left.value(), right)) return std::strong_ordering::equal;
    return std::cmp_less(left.value(), right) ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  friend constexpr Tag operator+(Tag left, int right) noexcept { return Tag(left.value() + right); }
  friend std::string to_string(Tag tag) { return std::to_string(tag.value()); }
  template <class Stream>
  requires requires { typename Stream::traits_type; }
  friend Stream& operator<<(Stream& stream, Tag tag) {
    stream << tag.value();
    return stream;
  }

 private:
  int value_ = 0;
};
inline constexpr Tag Tag::any{-1};
inline constexpr Tag Tag::max{std::numeric_limits<int>::max()};

/// All positions from 0 on, for loops: for (const Rank rank : world.ranks()).
template <class Position>
class PositionRange {
 public:
  class iterator {
   public:
    using value_type = Position;
    using difference_type = std::ptrdiff_t;
    constexpr iterator() noexcept = default;
    explicit constexpr iterator(Position position) noexcept : position_(position) {}
    constexpr Position operator*() const noexcept { return position_; }
    constexpr iterator& operator++() noexcept {
      ++position_;
      return *this;
    }
    constexpr iterator operator++(int) noexcept { return iterator(std::exchange(position_, position_ + 1)); }
    friend constexpr bool operator==(iterator, iterator) noexcept = default;

   private:
    Position position_;
  };

  explicit constexpr PositionRange(int size) noexcept : size_(size) {}
  [[nodiscard]] constexpr iterator begin() const noexcept { return iterator(Position{0}); }
  [[nodiscard]] constexpr iterator end() const noexcept { return iterator(Position{size_}); }
  [[nodiscard]] constexpr int size() const noexcept { return size_; }

 private:
  int size_;
};

namespace detail {
/// The position `distance` places after `from` on a ring of `size`; before it if `distance` is negative.
template <class Self>
constexpr Self neighbour(Self from, int distance, int size) noexcept {
  const int position = (from.value() + distance % size) % size;
  return Self(position < 0 ? position + size : position);
}
}  // namespace detail

}  // namespace tonari
