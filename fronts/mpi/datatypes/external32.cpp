#include "mpi/datatypes/external32.hpp"

#include "mpi/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tonari::mpi {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t batch_bytes = 2048;

/// The data bytes of a buffer in order, in pieces of any length up to `batch_bytes`.
class Source {
 public:
  explicit Source(message::LayoutCursor data) : data_(std::move(data)) {}

  /// Returns the next `bytes` bytes, valid until the next call. The data have so many.
  const std::byte* take(std::size_t bytes) {
    if (end_ - first_ < bytes) refill();
    first_ += bytes;
    return memory_.data() + first_ - bytes;
  }

 private:
  void refill() {
    const std::size_t left = end_ - first_;
    std::memmove(memory_.data(), memory_.data() + first_, left);
    const std::size_t more = std::min(memory_.size() - left, data_.bytes() - packed_);
    data_.pack(packed_, memory_.data() + left, more);
    packed_ += more;
    first_ = 0;
    end_ = left + more;
  }

  message::LayoutCursor data_;
  std::size_t packed_ = 0;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  std::array<std::byte, 2 * batch_bytes> memory_;
};

/// The same for writing. The last bytes are written by finish().
class Sink {
 public:
  explicit Sink(message::LayoutCursor data) : data_(std::move(data)) {}

  /// Returns room for the next `bytes` bytes, which the caller fills before the next call.
  std::byte* take(std::size_t bytes) {
    if (memory_.size() - used_ < bytes) finish();
    used_ += bytes;
    return memory_.data() + used_ - bytes;
  }
  void finish() {
    data_.unpack(unpacked_, memory_.data(), used_);
    unpacked_ += used_;
    used_ = 0;
  }

 private:
  message::LayoutCursor data_;
  std::size_t unpacked_ = 0;
  std::size_t used_ = 0;
  std::array<std::byte, 2 * batch_bytes> memory_;
};

template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
void store(T value, std::byte* to) noexcept {
  std::memcpy(to, &value, sizeof value);
}

void reverse(const std::byte* from, std::byte* to, std::size_t bytes) noexcept {
  std::reverse_copy(from, from + bytes, to);
}

// Reverse the bytes of each of `count` values.
template <class T, class Swap>
void reverse_values(const std::byte* from, std::byte* to, std::size_t count, Swap swap) noexcept {
  for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T)) store<T>(swap(load<T>(from + i)), to + i);
}
void reverse_all(const std::byte* from, std::byte* to, std::size_t bytes, std::size_t count) noexcept {
  switch (bytes) {
    case 1: std::memcpy(to, from, count); break;
    case 2: return reverse_values<std::uint16_t>(from, to, count, [](auto value) { return __builtin_bswap16(value); });
    case 4: return reverse_values<std::uint32_t>(from, to, count, [](auto value) { return __builtin_bswap32(value); });
    case 8: return reverse_values<std::uint64_t>(from, to, count, [](auto value) { return __builtin_bswap64(value); });
    default:
      for (std::size_t i = 0; i < count * bytes; i += bytes) reverse(from + i, to + i, bytes);
  }
}

[[noreturn, gnu::cold]] void refuse_value(long long value, const char* type, const char* remedy) {
  throw Failure(MPI_ERR_CONVERSION, fmt::format("external32 cannot represent the {} {}: {}", type, value, remedy));
}

// Stores the low bytes of a native integer, if they are the same value.
template <class Narrow, class Wide>
void narrow_to(const std::byte* from, std::byte* to) {
  const auto value = load<Wide>(from);
  if (static_cast<Wide>(static_cast<Narrow>(value)) != value) {
    if constexpr (sizeof(Narrow) == 2) refuse_value(value, "wide character", "it has 16 bits for MPI_WCHAR");
    refuse_value(static_cast<long long>(value), "long", "it has 32 bits for MPI_LONG; send MPI_INT64_T");
  }
  reverse(from, to, sizeof(Narrow));
}
template <class Narrow, class Wide>
void widen_from(const std::byte* from, std::byte* to) noexcept {
  std::byte native[sizeof(Narrow)];
  reverse(from, native, sizeof native);
  store(static_cast<Wide>(load<Narrow>(native)), to);
}

// long double has 80 bits here and 128 there.
void extend(const std::byte* from, std::byte* to) noexcept {
  std::byte native[16];
  store(static_cast<__float128>(load<long double>(from)), native);
  reverse(native, to, sizeof native);
}
void shorten(const std::byte* from, std::byte* to) noexcept {
  std::byte native[16];
  reverse(from, native, sizeof native);
  std::memset(to, 0, sizeof(long double));  // its padding too
  const auto value = static_cast<long double>(load<__float128>(native));
  std::memcpy(to, &value, 10);
}

/// How an element is made of values that are converted alike.
struct Shape {
  std::size_t values;
  std::size_t bytes;           // of a value
  std::size_t external_bytes;  // of a value
};
Shape shape_of(const Element& element) noexcept {
  const std::size_t values =
      element.basic == Basic::complex64 || element.basic == Basic::complex128 || element.basic == Basic::complex160 ? 2
                                                                                                                    : 1;
  return {values, element.bytes / values, element.external_bytes / values};
}

enum class Way { reverse, narrow_long, narrow_unsigned_long, narrow_wide_character, long_double };
Way way_of(const Element& element) noexcept {
  if (element.basic == Basic::float80 || element.basic == Basic::complex160) return Way::long_double;
  if (element.bytes == element.external_bytes) return Way::reverse;
  if (element.external_bytes == 2) return Way::narrow_wide_character;
  return element.basic == Basic::uint64 ? Way::narrow_unsigned_long : Way::narrow_long;
}

template <class Convert>
void each(const std::byte* from, std::size_t from_bytes, std::byte* to, std::size_t to_bytes, std::size_t count,
          Convert convert) {
  for (std::size_t i = 0; i < count; ++i) convert(from + i * from_bytes, to + i * to_bytes);
}

void convert_to(const Element& element, const Shape& shape, const std::byte* native, std::byte* external,
                std::size_t count) {
  const auto by = [&](auto convert) { each(native, shape.bytes, external, shape.external_bytes, count, convert); };
  switch (way_of(element)) {
    case Way::reverse: return reverse_all(native, external, shape.bytes, count);
    case Way::narrow_long: return by(narrow_to<std::int32_t, std::int64_t>);
    case Way::narrow_unsigned_long: return by(narrow_to<std::uint32_t, std::uint64_t>);
    case Way::narrow_wide_character: return by(narrow_to<std::uint16_t, std::int32_t>);
    case Way::long_double: return by(extend);
  }
}

void convert_from(const Element& element, const Shape& shape, const std::byte* external, std::byte* native,
                  std::size_t count) {
  const auto by = [&](auto convert) { each(external, shape.external_bytes, native, shape.bytes, count, convert); };
  switch (way_of(element)) {
    case Way::reverse: return reverse_all(external, native, shape.bytes, count);
    case Way::narrow_long: return by(widen_from<std::int32_t, std::int64_t>);
    case Way::narrow_unsigned_long: return by(widen_from<std::uint32_t, std::uint64_t>);
    case Way::narrow_wide_character: return by(widen_from<std::uint16_t, std::int32_t>);
    case Way::long_double: return by(shorten);
  }
}

/// Calls `visit(Element, Shape, std::size_t values)` for runs of equal values of `count` elements of a type, in order.
/// A run is at most a batch.
template <class Visit>
void for_each_batch(const Datatype& type, MPI_Count count, Visit visit) {
  type.signature.repeated(static_cast<std::size_t>(count)).for_each_run([&](const Element& element, std::size_t times) {
    const Shape shape = shape_of(element);
    std::size_t left = times * shape.values;
    while (left != 0) {
      const std::size_t batch = std::min(left, batch_bytes / shape.bytes);
      visit(element, shape, batch);
      left -= batch;
    }
  });
}

}  // namespace

void to_external(const void* buffer, MPI_Count count, const Datatype& type, std::byte* external) {
  Source source(cursor(buffer, count, type));
  for_each_batch(type, count, [&](const Element& element, const Shape& shape, std::size_t values) {
    convert_to(element, shape, source.take(values * shape.bytes), external, values);
    external += values * shape.external_bytes;
  });
}

void from_external(const std::byte* external, void* buffer, MPI_Count count, const Datatype& type) {
  Sink sink(cursor(buffer, count, type));
  for_each_batch(type, count, [&](const Element& element, const Shape& shape, std::size_t values) {
    convert_from(element, shape, external, sink.take(values * shape.bytes), values);
    external += values * shape.external_bytes;
  });
  sink.finish();
}

}  // namespace tonari::mpi
