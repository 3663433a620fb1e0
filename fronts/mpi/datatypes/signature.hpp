#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tonari::mpi {

/// Kinds of basic elements, for reductions and external32. Types that differ only in their name have the same.
enum class Basic : std::uint8_t {
  none,  ///< Derived from several, or not supported.
  byte,  ///< MPI_BYTE and MPI_PACKED.
  character,
  int8,
  int16,
  int32,
  int64,
  int128,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  float80,   ///< long double, in 16 bytes.
  float128,  ///< MPI_REAL16
  complex64,
  complex128,
  complex160,  ///< Two long doubles.
  logical8,
  logical16,
  logical32,
  logical64,
  float_int,
  double_int,
  long_int,
  two_ints,
  short_int,
  long_double_int,
  two_floats,
  two_doubles,
};
inline constexpr std::size_t basic_count = static_cast<std::size_t>(Basic::two_doubles) + 1;

/// A basic element: one value, or one complex number.
struct Element {
  Basic basic = Basic::none;
  std::uint8_t bytes = 0;
  std::uint8_t external_bytes = 0;  ///< In external32. At most `bytes`.
  bool operator==(const Element&) const noexcept = default;
};

/// The basic elements of a datatype, in the order in which they are sent.
///
/// A tree: repetitions of an element, or of a list of signatures. Lists have at least two entries, of which neighbours
/// differ. So the size of a signature does not depend on counts.
///
/// Owns:    its lists, which copies and larger signatures share.
/// Threads: immutable, so any.
class Signature {
 public:
  struct Part {
    std::size_t times;
    const Signature* signature;  ///< Needed during the call only.
  };

  /// No elements.
  Signature() noexcept = default;
  Signature(Element element, std::size_t count) noexcept : element_(element), times_(count) {}
  /// The caller has checked that the bytes of all repetitions are below 2^63. The same holds for joined().
  [[nodiscard]] Signature repeated(std::size_t times) const;
  static Signature joined(std::span<const Part> parts);

  [[nodiscard]] std::size_t bytes() const noexcept { return times_ * bytes_of_one(); }
  [[nodiscard]] std::size_t elements() const noexcept { return times_ * elements_of_one(); }
  [[nodiscard]] std::size_t external_bytes() const noexcept { return times_ * external_bytes_of_one(); }

  /// Returns how many elements the first `bytes` bytes of endless repetitions of the signature are. Nothing if they end
  /// within an element.
  [[nodiscard]] std::optional<std::size_t> elements_in(std::size_t bytes) const noexcept;
  /// Returns the bytes of the first `elements` elements of endless repetitions. Nothing if they are 2^63 or more.
  [[nodiscard]] std::optional<std::size_t> bytes_of(std::size_t elements) const noexcept;

  /// Calls `visit(Element, std::size_t count)` for the runs of equal elements, in order.
  template <class Visit>
  void for_each_run(Visit&& visit) const {
    if (list_ == nullptr) {
      if (times_ != 0) visit(element_, times_);
      return;
    }
    for (std::size_t i = 0; i < times_; ++i) {
      for (const Signature& part : list_->parts) part.for_each_run(visit);
    }
  }

 private:
  struct List;
  class ListBuilder;
  struct Measures;

  [[nodiscard]] std::size_t bytes_of_one() const noexcept;
  [[nodiscard]] std::size_t elements_of_one() const noexcept;
  [[nodiscard]] std::size_t external_bytes_of_one() const noexcept;
  template <class Given, class Wanted>
  std::size_t convert(std::size_t& given, Given of_given, Wanted of_wanted) const noexcept;

  struct List {
    std::vector<Signature> parts;
    std::size_t bytes = 0;
    std::size_t elements = 0;
    std::size_t external_bytes = 0;
    unsigned depth = 1;  // of nested lists
  };

  Element element_;
  std::size_t times_ = 0;             // of the element, or of the list
  std::shared_ptr<const List> list_;  // null: the element
};

}  // namespace tonari::mpi
