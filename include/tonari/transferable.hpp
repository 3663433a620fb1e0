#pragma once

#include <tonari/layout.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <ranges>
#include <span>
#include <type_traits>

// The types that a message may carry, and how buffers become bytes.
namespace tonari {

namespace detail {
template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;
/// The bytes of a T are its value, and mean the same to another process.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
                !std::is_null_pointer_v<T> && !std::ranges::view<T> && !std::input_or_output_iterator<T> &&
                !is_reference_wrapper<T> && !is_layout<T>;
}  // namespace detail

/// A type that a message may carry: one value of a trivially copyable type, or a contiguous range of such values (a
/// vector, a span, an array, a string). Pointers, iterators and other views are refused: their bytes mean nothing
/// elsewhere.
template <class T>
concept Transferable = (std::ranges::contiguous_range<T> && std::ranges::sized_range<T> &&
                        detail::Plain<std::ranges::range_value_t<T>>) ||
                       (!std::ranges::contiguous_range<T> && detail::Plain<std::remove_cvref_t<T>>);

namespace detail {

template <class T>
struct ElementOf {
  using type = std::remove_cvref_t<T>;
};
template <std::ranges::contiguous_range T>
struct ElementOf<T> {
  using type = std::ranges::range_value_t<T>;
};
template <class T>
using Element = typename ElementOf<T>::type;

/// The same, const where the element may not be written.
template <class T>
struct ReferredOf {
  using type = std::remove_reference_t<T>;
};
template <std::ranges::contiguous_range T>
struct ReferredOf<T> {
  using type = std::remove_reference_t<std::ranges::range_reference_t<T>>;
};
template <class T>
requires is_layout<std::remove_cvref_t<T>>
struct ReferredOf<T> {
  using type = LayoutElement<T>;
};

template <class T>
inline constexpr bool is_layout_of_plain = false;
template <class T>
requires is_layout<std::remove_cvref_t<T>>
inline constexpr bool is_layout_of_plain<T> = Plain<std::remove_const_t<LayoutElement<T>>>;

/// The memory that an argument of type T, as deduced for T&&, names is still there after the call.
template <class T>
inline constexpr bool outlives_call =
    std::is_lvalue_reference_v<T> || std::ranges::borrowed_range<T> || is_layout<std::remove_cvref_t<T>>;

/// Each of these is true, or gives the compiler's only message about an argument that cannot be used.
template <class T>
consteval bool check_sent() {
  static_assert(Transferable<T> || is_layout_of_plain<T>,
                "only trivially copyable values, contiguous ranges of them (vector, array, span, string) and layouts "
                "of them can be sent and received; pointers, other views and owning types cannot");
  return Transferable<T> || is_layout_of_plain<T>;
}
template <class T>
consteval bool check_start_sent() {
  static_assert(
      outlives_call<T>,
      "a started operation reads its buffer until it is complete: pass a variable or a span, not a temporary");
  return check_sent<T>() && outlives_call<T>;
}
template <class T>
consteval bool check_received() {
  constexpr bool writable = !std::is_const_v<typename ReferredOf<T>::type>;
  static_assert(
      outlives_call<T>,
      "data is received into a buffer that must outlive the call: pass a variable or a span, not a temporary");
  static_assert(!outlives_call<T> || writable, "data cannot be received into a const buffer");
  return check_sent<T>() && outlives_call<T> && writable;
}

template <class T>
std::span<const std::byte> bytes_of(const T& values) noexcept {
  if constexpr (std::ranges::contiguous_range<T>) {
    return std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
  } else {
    return std::as_bytes(std::span(&values, 1));
  }
}
template <class T>
std::span<std::byte> writable_bytes_of(T& values) noexcept {
  if constexpr (std::ranges::contiguous_range<T>) {
    return std::as_writable_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
  } else {
    return std::as_writable_bytes(std::span(&values, 1));
  }
}

// The bytes of an argument, after the checks. A layout is no argument of a collective.

template <class T>
std::span<const std::byte> sent_bytes(const T& values) noexcept {
  if constexpr (check_sent<const T&>()) {
    static_assert(!is_layout<T>, "a collective takes a buffer without gaps, not a layout");
    if constexpr (!is_layout<T>) return bytes_of(values);
  }
  return {};
}
template <class T>
std::span<const std::byte> start_sent_bytes(std::remove_reference_t<T>& values) noexcept {
  if constexpr (check_start_sent<T>()) return sent_bytes(values);
  return {};
}
template <class T>
std::span<std::byte> received_bytes(std::remove_reference_t<T>& values) noexcept {
  if constexpr (check_received<T>()) {
    static_assert(!is_layout<std::remove_cvref_t<T>>, "a collective takes a buffer without gaps, not a layout");
    if constexpr (!is_layout<std::remove_cvref_t<T>>) return writable_bytes_of(values);
  }
  return {};
}

/// Any buffer or layout as blocks.
template <class T>
Blocks sent_blocks(const T& values) noexcept {
  if constexpr (is_layout<T>) {
    return blocks_of(values);
  } else {
    const auto bytes = bytes_of(values);
    return blocks_of(std::span(const_cast<std::byte*>(bytes.data()), bytes.size()));  // only read
  }
}
template <class T>
Blocks received_blocks(T& values) noexcept {
  if constexpr (is_layout<std::remove_cv_t<T>>) {
    return blocks_of(values);
  } else {
    return blocks_of(writable_bytes_of(values));
  }
}

}  // namespace detail

}  // namespace tonari
