#pragma once

#include <tonari/status.hpp>

#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tonari::fabric {

inline constexpr std::size_t head_bytes = 64;
inline constexpr std::size_t envelope_bytes = 16;
inline constexpr std::size_t inline_bytes_max = head_bytes - envelope_bytes;

/// The layer that a head is for. The fabric knows no more than this of the layers above it: each has a number, and
/// registers a ProtocolHandler for it with Engine::handler().
enum class Protocol : std::uint8_t { message = 0, window = 1, share = 2, fabric = 3 };
inline constexpr std::size_t handlers_count = 3;  // the engine itself handles Protocol::fabric

/// An enumeration of the kinds of heads that one protocol sends. Each layer defines its own; KindNumber numbers it.
template <class K>
concept KindEnumeration = std::is_enum_v<K> && std::same_as<std::underlying_type_t<K>, std::uint8_t>;

/// The kind of a head, in one byte:
///
///   bits  7-6        5                        4-0
///         protocol   1: a tail follows it     operation, which the protocol alone understands
///
/// Any kind of any layer converts to it and compares with it. to<K>() gives it back to the layer that it is for.
struct HeadKind {
  static constexpr unsigned tail_bit = 1U << 5;
  std::uint8_t value = 0;

  constexpr HeadKind() noexcept = default;
  explicit constexpr HeadKind(std::uint8_t number) noexcept : value(number) {}
  template <KindEnumeration K>
  constexpr HeadKind(K kind) noexcept : value(static_cast<std::uint8_t>(kind)) {}

  [[nodiscard]] constexpr Protocol protocol() const noexcept { return static_cast<Protocol>(value >> 6); }
  /// The payload begins with a Tail.
  [[nodiscard]] constexpr bool has_tail() const noexcept { return (value & tail_bit) != 0; }
  template <KindEnumeration K>
  [[nodiscard]] constexpr K to() const noexcept {
    return static_cast<K>(value);
  }
  friend constexpr auto operator<=>(HeadKind, HeadKind) noexcept = default;
};

/// Numbers the kinds of one protocol.
template <Protocol protocol>
struct KindNumber {
  static constexpr unsigned operations_count = 32;

  static consteval std::uint8_t plain(unsigned operation) {
    if (operation >= operations_count) throw "a protocol has 32 operations at most";
    return static_cast<std::uint8_t>(static_cast<unsigned>(protocol) << 6 | operation);
  }
  /// Numbers a kind whose heads carry a tail.
  static consteval std::uint8_t with_tail(unsigned operation) {
    return static_cast<std::uint8_t>(plain(operation) | HeadKind::tail_bit);
  }
};

/// The heads of Protocol::fabric.
enum class Kind : std::uint8_t {
  /// To ranks of other hosts, the sender's last head: it begins no further operation.
  rank_leaves = KindNumber<Protocol::fabric>::plain(0),
  /// To ranks of other hosts. `tag` is 1 when the sender has no room for more unexpected messages, 0 when it has again.
  rank_full = KindNumber<Protocol::fabric>::plain(1),
  /// To a rank of another host, which has nothing to do: sending it has made the connection (failure_detector.hpp).
  rank_watches = KindNumber<Protocol::fabric>::plain(2),
  /// To all ranks: the rank `tag` has died, which is of another host than its watcher, the sender.
  rank_died = KindNumber<Protocol::fabric>::plain(3),
  /// Between two ends of an ordering transport: Credit. Never handed up (ordered.hpp).
  credit = KindNumber<Protocol::fabric>::plain(4),
};

// The unit of arrival: one cache line, little-endian. Offsets in bytes.
//
//   0        2      3        4         8          12        16                                64
//   +--------+------+--------+---------+----------+---------+----------------------------------+
//   | publish| kind | inline | source  | context  | tag     | payload: bytes, or the struct    |
//   |        |      |        |         |          |         | that the kind names              |
//   +--------+------+--------+---------+----------+---------+----------------------------------+
//
// publish  bits 0-1: the ring's lap. The head is published when this equals the lap that the reader is in.
//          bits 2-15: the local rank that claimed the slot before this one (ring.hpp: gaps after a death).
// kind     HeadKind: protocol, whether there is a tail, operation.
// inline   number of payload bytes in the head, 0 to inline_bytes_max.
// source   the sender's rank in the job.
// context  the communicator, window or variable; each layer says which.
// tag      the user's tag, or what the kind says.
struct alignas(head_bytes) Head {
  std::uint16_t publish = 0;
  HeadKind kind{};
  std::uint8_t inline_bytes = 0;
  std::uint32_t source = 0;
  std::uint32_t context = 0;
  std::uint32_t tag = 0;
  std::array<std::byte, inline_bytes_max> payload;  // written and read only as far as `kind` and `inline_bytes` say

  template <class T>
  [[nodiscard]] T as() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= inline_bytes_max);
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
  template <class T>
  void set(const T& value) noexcept {
    static_assert(std::has_unique_object_representations_v<T> && sizeof(T) <= inline_bytes_max);
    std::memcpy(payload.data(), &value, sizeof value);
  }
};
static_assert(sizeof(Head) == head_bytes && offsetof(Head, payload) == envelope_bytes);
static_assert(offsetof(Head, kind) == 2 && offsetof(Head, source) == 4 && offsetof(Head, context) == 8 &&
              offsetof(Head, tag) == 12);
static_assert(std::has_unique_object_representations_v<Head> && std::is_trivially_copyable_v<Head>);
static_assert(std::endian::native == std::endian::little,
              "heads are little-endian: a big-endian host would have to swap bytes here");

/// The bytes that belong to a head and do not fit into it. The payload of every kind with a tail begins with this, so
/// that a transport finds the tail without knowing the operation.
struct Tail {
  std::uint64_t bytes;
  /// A BulkPlace in the sender's bulk memory. Between hosts, at the receiver: see Engine::look().
  std::uint64_t place;
};

/// Whether a struct with a tail's bytes and place at these offsets may be the payload of a head with a tail.
constexpr bool begins_with_tail(std::size_t bytes_at, std::size_t place_at) noexcept {
  return bytes_at == offsetof(Tail, bytes) && place_at == offsetof(Tail, place);
}

/// The status that a peer has sent as a number. Status::bounds if no operation of a peer ends with that number.
constexpr Status status_of(std::uint32_t number) noexcept {
  for (const Status each :
       {Status::ok, Status::bad_address, Status::peer_gone, Status::no_memory, Status::invalid, Status::denied}) {
    if (number == static_cast<std::uint32_t>(each)) return each;
  }
  return Status::bounds;
}

}  // namespace tonari::fabric
