#include "mpi/collectives/predefined_ops.hpp"

#include <complex>
#include <cstddef>
#include <cstring>

// The predefined operations: one loop for each operation and kind of element. Elements are loaded and stored as bytes,
// so that they may have any address; compilers vectorise these loops.
namespace tonari::mpi {

namespace {

__extension__ using Int128 = __int128;
#ifdef __SIZEOF_FLOAT128__
__extension__ using Float128 = __float128;
#else
using Float128 = long double;
#endif

template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

struct Max {
  template <class T>
  static T apply(T left, T right) {
    return left < right ? right : left;
  }
};
struct Min {
  template <class T>
  static T apply(T left, T right) {
    return right < left ? right : left;
  }
};
// Integers wrap around: their sums and products are computed without sign.
template <class T>
inline constexpr bool is_small_integer = std::is_integral_v<T> && sizeof(T) <= 8;
struct Sum {
  template <class T>
  static T apply(T left, T right) {
    if constexpr (is_small_integer<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(left) + static_cast<std::uint64_t>(right));
    } else {
      return left + right;
    }
  }
};
struct Product {
  template <class T>
  static T apply(T left, T right) {
    if constexpr (is_small_integer<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(left) * static_cast<std::uint64_t>(right));
    } else {
      return left * right;
    }
  }
};
struct LogicalAnd {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>(left != 0 && right != 0);
  }
};
struct LogicalOr {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>(left != 0 || right != 0);
  }
};
struct LogicalXor {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>((left != 0) != (right != 0));
  }
};
struct BitAnd {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>(left & right);
  }
};
struct BitOr {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>(left | right);
  }
};
struct BitXor {
  template <class T>
  static T apply(T left, T right) {
    return static_cast<T>(left ^ right);
  }
};
struct MaxLocation {
  template <class T>
  static T apply(T left, T right) {
    if (left.value == right.value) return {left.value, right.index < left.index ? right.index : left.index};
    return left.value < right.value ? right : left;
  }
};
struct MinLocation {
  template <class T>
  static T apply(T left, T right) {
    if (left.value == right.value) return {left.value, right.index < left.index ? right.index : left.index};
    return right.value < left.value ? right : left;
  }
};

template <class Operation, class T>
void fold(void* inout, const void* in, std::size_t count, const void*) {
  auto* __restrict into = static_cast<std::byte*>(inout);
  const auto* __restrict from = static_cast<const std::byte*>(in);
  for (std::size_t i = 0; i < count; ++i) {
    T left;
    T right;
    std::memcpy(&left, from + i * sizeof(T), sizeof(T));
    std::memcpy(&right, into + i * sizeof(T), sizeof(T));
    const T result = Operation::apply(left, right);
    std::memcpy(into + i * sizeof(T), &result, sizeof(T));
  }
}

// The kinds of elements that operations are defined for.
enum Class : unsigned { integers = 1, floats = 2, complexes = 4, logicals = 8, bytes = 16, pairs = 32 };

template <class Operation, unsigned classes>
constexpr detail::Fold fold_of(Basic basic) {
  if constexpr ((classes & integers) != 0) {
    switch (basic) {
      case Basic::character: return fold<Operation, char>;
      case Basic::int8: return fold<Operation, std::int8_t>;
      case Basic::int16: return fold<Operation, std::int16_t>;
      case Basic::int32: return fold<Operation, std::int32_t>;
      case Basic::int64: return fold<Operation, std::int64_t>;
      case Basic::int128: return fold<Operation, Int128>;
      case Basic::uint8: return fold<Operation, std::uint8_t>;
      case Basic::uint16: return fold<Operation, std::uint16_t>;
      case Basic::uint32: return fold<Operation, std::uint32_t>;
      case Basic::uint64: return fold<Operation, std::uint64_t>;
      default: break;
    }
  }
  if constexpr ((classes & floats) != 0) {
    switch (basic) {
      case Basic::float32: return fold<Operation, float>;
      case Basic::float64: return fold<Operation, double>;
      case Basic::float80: return fold<Operation, long double>;
      case Basic::float128: return fold<Operation, Float128>;
      default: break;
    }
  }
  if constexpr ((classes & complexes) != 0) {
    switch (basic) {
      case Basic::complex64: return fold<Operation, std::complex<float>>;
      case Basic::complex128: return fold<Operation, std::complex<double>>;
      case Basic::complex160: return fold<Operation, std::complex<long double>>;
      default: break;
    }
  }
  if constexpr ((classes & logicals) != 0) {
    switch (basic) {
      case Basic::logical8: return fold<Operation, std::uint8_t>;
      case Basic::logical16: return fold<Operation, std::uint16_t>;
      case Basic::logical32: return fold<Operation, std::uint32_t>;
      case Basic::logical64: return fold<Operation, std::uint64_t>;
      default: break;
    }
  }
  if constexpr ((classes & bytes) != 0) {
    if (basic == Basic::byte) return fold<Operation, std::uint8_t>;
  }
  if constexpr ((classes & pairs) != 0) {
    switch (basic) {
      case Basic::float_int: return fold<Operation, Pair<float, int>>;
      case Basic::double_int: return fold<Operation, Pair<double, int>>;
      case Basic::long_int: return fold<Operation, Pair<long, int>>;
      case Basic::two_ints: return fold<Operation, Pair<int, int>>;
      case Basic::short_int: return fold<Operation, Pair<short, int>>;
      case Basic::long_double_int: return fold<Operation, Pair<long double, int>>;
      case Basic::two_floats: return fold<Operation, Pair<float, float>>;
      case Basic::two_doubles: return fold<Operation, Pair<double, double>>;
      default: break;
    }
  }
  return nullptr;
}

template <class Operation, unsigned classes>
constexpr Folds folds = [] {
  Folds made{};
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = fold_of<Operation, classes>(static_cast<Basic>(i));
  return made;
}();

struct Named {
  MPI_Op handle;
  const char* name;
  const Folds* folds;
};
const Named named[] = {
    {MPI_SUM, "MPI_SUM", &folds<Sum, integers | floats | complexes>},
    {MPI_PROD, "MPI_PROD", &folds<Product, integers | floats | complexes>},
    {MPI_MAX, "MPI_MAX", &folds<Max, integers | floats>},
    {MPI_MIN, "MPI_MIN", &folds<Min, integers | floats>},
    {MPI_LAND, "MPI_LAND", &folds<LogicalAnd, integers | logicals>},
    {MPI_LOR, "MPI_LOR", &folds<LogicalOr, integers | logicals>},
    {MPI_LXOR, "MPI_LXOR", &folds<LogicalXor, integers | logicals>},
    {MPI_BAND, "MPI_BAND", &folds<BitAnd, integers | bytes>},
    {MPI_BOR, "MPI_BOR", &folds<BitOr, integers | bytes>},
    {MPI_BXOR, "MPI_BXOR", &folds<BitXor, integers | bytes>},
    {MPI_MINLOC, "MPI_MINLOC", &folds<MinLocation, pairs>},
    {MPI_MAXLOC, "MPI_MAXLOC", &folds<MaxLocation, pairs>},
    {MPI_REPLACE, "MPI_REPLACE", nullptr},
    {MPI_NO_OP, "MPI_NO_OP", nullptr},
};

}  // namespace

std::array<Op*, 32> make_predefined_ops() {
  std::array<Op*, 32> ops{};
  for (const Named& each : named) {
    auto* const op = new Op;
    op->name = each.name;
    op->folds = each.folds;
    op->commutes = each.folds != nullptr;
    ops[number_of(each.handle) & 31] = op;
  }
  return ops;
}

}  // namespace tonari::mpi
