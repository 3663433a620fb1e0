#include "mpi/datatypes/predefined_types.hpp"

#include <complex>
#include <cstddef>

namespace tonari::mpi {

namespace {

struct Named {
  MPI_Datatype handle;
  const char* name;
  Basic basic;  // Basic::none if this platform has no such type
};
const Named named[] = {
    {MPI_AINT, "MPI_AINT", Basic::int64},
    {MPI_COUNT, "MPI_COUNT", Basic::int64},
    {MPI_OFFSET, "MPI_OFFSET", Basic::int64},
    {MPI_PACKED, "MPI_PACKED", Basic::byte},
    {MPI_SHORT, "MPI_SHORT", Basic::int16},
    {MPI_INT, "MPI_INT", Basic::int32},
    {MPI_LONG, "MPI_LONG", Basic::int64},
    {MPI_LONG_LONG, "MPI_LONG_LONG", Basic::int64},
    {MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", Basic::uint16},
    {MPI_UNSIGNED, "MPI_UNSIGNED", Basic::uint32},
    {MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", Basic::uint64},
    {MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", Basic::uint64},
    {MPI_FLOAT, "MPI_FLOAT", Basic::float32},
    {MPI_C_FLOAT_COMPLEX, "MPI_C_FLOAT_COMPLEX", Basic::complex64},
    {MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", Basic::complex64},
    {MPI_DOUBLE, "MPI_DOUBLE", Basic::float64},
    {MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", Basic::complex128},
    {MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", Basic::complex128},
    {MPI_LOGICAL, "MPI_LOGICAL", Basic::logical32},
    {MPI_INTEGER, "MPI_INTEGER", Basic::int32},
    {MPI_REAL, "MPI_REAL", Basic::float32},
    {MPI_COMPLEX, "MPI_COMPLEX", Basic::complex64},
    {MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", Basic::float64},
    {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", Basic::complex128},
    {MPI_CHARACTER, "MPI_CHARACTER", Basic::character},
    {MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", Basic::float80},
    {MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", Basic::complex160},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX", Basic::complex160},
    {MPI_FLOAT_INT, "MPI_FLOAT_INT", Basic::float_int},
    {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", Basic::double_int},
    {MPI_LONG_INT, "MPI_LONG_INT", Basic::long_int},
    {MPI_2INT, "MPI_2INT", Basic::two_ints},
    {MPI_SHORT_INT, "MPI_SHORT_INT", Basic::short_int},
    {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", Basic::long_double_int},
    {MPI_2REAL, "MPI_2REAL", Basic::two_floats},
    {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", Basic::two_doubles},
    {MPI_2INTEGER, "MPI_2INTEGER", Basic::two_ints},
    {MPI_C_BOOL, "MPI_C_BOOL", Basic::logical8},
    {MPI_CXX_BOOL, "MPI_CXX_BOOL", Basic::logical8},
    {MPI_WCHAR, "MPI_WCHAR", Basic::int32},
    {MPI_INT8_T, "MPI_INT8_T", Basic::int8},
    {MPI_UINT8_T, "MPI_UINT8_T", Basic::uint8},
    {MPI_CHAR, "MPI_CHAR", Basic::character},
    {MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", Basic::int8},
    {MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", Basic::uint8},
    {MPI_BYTE, "MPI_BYTE", Basic::byte},
    {MPI_INT16_T, "MPI_INT16_T", Basic::int16},
    {MPI_UINT16_T, "MPI_UINT16_T", Basic::uint16},
    {MPI_INT32_T, "MPI_INT32_T", Basic::int32},
    {MPI_UINT32_T, "MPI_UINT32_T", Basic::uint32},
    {MPI_INT64_T, "MPI_INT64_T", Basic::int64},
    {MPI_UINT64_T, "MPI_UINT64_T", Basic::uint64},
    {MPI_LOGICAL1, "MPI_LOGICAL1", Basic::logical8},
    {MPI_INTEGER1, "MPI_INTEGER1", Basic::int8},
    {MPI_LOGICAL2, "MPI_LOGICAL2", Basic::logical16},
    {MPI_INTEGER2, "MPI_INTEGER2", Basic::int16},
    {MPI_REAL2, "MPI_REAL2", Basic::none},
    {MPI_LOGICAL4, "MPI_LOGICAL4", Basic::logical32},
    {MPI_INTEGER4, "MPI_INTEGER4", Basic::int32},
    {MPI_REAL4, "MPI_REAL4", Basic::float32},
    {MPI_COMPLEX4, "MPI_COMPLEX4", Basic::none},
    {MPI_LOGICAL8, "MPI_LOGICAL8", Basic::logical64},
    {MPI_INTEGER8, "MPI_INTEGER8", Basic::int64},
    {MPI_REAL8, "MPI_REAL8", Basic::float64},
    {MPI_COMPLEX8, "MPI_COMPLEX8", Basic::complex64},
    {MPI_LOGICAL16, "MPI_LOGICAL16", Basic::none},
    {MPI_INTEGER16, "MPI_INTEGER16", Basic::int128},
    {MPI_REAL16, "MPI_REAL16", Basic::float128},
    {MPI_COMPLEX16, "MPI_COMPLEX16", Basic::complex128},
    {MPI_COMPLEX32, "MPI_COMPLEX32", Basic::none},
};

template <class Value>
struct Pair {
  Value value;
  int index;
};

/// A type that is one element.
struct Simple {
  std::size_t bytes;
  std::size_t alignment;
};

Simple simple(Basic basic) noexcept {
  switch (basic) {
    case Basic::byte:
    case Basic::character:
    case Basic::int8:
    case Basic::uint8:
    case Basic::logical8: return {1, 1};
    case Basic::int16:
    case Basic::uint16:
    case Basic::logical16: return {2, 2};
    case Basic::int32:
    case Basic::uint32:
    case Basic::float32:
    case Basic::logical32: return {4, 4};
    case Basic::int64:
    case Basic::uint64:
    case Basic::float64:
    case Basic::logical64: return {8, 8};
    case Basic::complex64: return {8, alignof(float)};
    case Basic::complex128: return {16, alignof(double)};
    case Basic::int128:
    case Basic::float128: return {16, 16};
    case Basic::float80: return {sizeof(long double), alignof(long double)};
    case Basic::complex160: return {sizeof(std::complex<long double>), alignof(long double)};
    default: return {};
  }
}

// MPI_LONG, MPI_UNSIGNED_LONG and MPI_WCHAR have fewer bytes in external32 than here.
std::uint8_t external_bytes(MPI_Datatype handle, std::size_t bytes) noexcept {
  if (handle == MPI_LONG || handle == MPI_UNSIGNED_LONG) return 4;
  return handle == MPI_WCHAR ? 2 : static_cast<std::uint8_t>(bytes);
}

TypeMap map_of_element(const Named& type) {
  const Simple shape = simple(type.basic);
  TypeMap map;
  map.size = shape.bytes;
  map.extent = static_cast<MPI_Count>(shape.bytes);
  map.is_plain = true;
  map.alignment = static_cast<std::uint8_t>(shape.alignment);
  map.layout = message::Layout::bytes(shape.bytes);
  const Element element{type.basic, static_cast<std::uint8_t>(shape.bytes), external_bytes(type.handle, shape.bytes)};
  map.signature = Signature(element, shape.bytes == 0 ? 0 : 1);
  return map;
}

// Padding between the parts of a pair and behind them is no data; then the type is not plain.
template <class Value>
TypeMap map_of_pair(MPI_Datatype value, Basic basic) {
  const TypeMap first = map_of_element({value, "", basic});
  const TypeMap second = map_of_element({MPI_INT, "", Basic::int32});
  const message::Layout::Member members[] = {{offsetof(Pair<Value>, value), 1, &first.layout, 0},
                                             {offsetof(Pair<Value>, index), 1, &second.layout, 0}};
  const Signature::Part parts[] = {{1, &first.signature}, {1, &second.signature}};
  TypeMap map;
  map.size = first.size + second.size;
  map.extent = sizeof(Pair<Value>);
  map.is_plain = map.size == sizeof(Pair<Value>);
  map.alignment = alignof(Pair<Value>);
  map.layout = message::Layout::joined(members);
  map.signature = Signature::joined(parts);
  return map;
}

TypeMap map_of_two(MPI_Datatype value, Basic basic) {
  TypeMap map = map_of_element({value, "", basic});
  map.size *= 2;
  map.extent *= 2;
  map.layout = message::Layout::bytes(map.size);
  map.signature = map.signature.repeated(2);
  return map;
}

TypeMap map_of(const Named& type) {
  switch (type.basic) {
    case Basic::float_int: return map_of_pair<float>(MPI_FLOAT, Basic::float32);
    case Basic::double_int: return map_of_pair<double>(MPI_DOUBLE, Basic::float64);
    case Basic::long_int: return map_of_pair<long>(MPI_LONG, Basic::int64);
    case Basic::short_int: return map_of_pair<short>(MPI_SHORT, Basic::int16);
    case Basic::long_double_int: return map_of_pair<long double>(MPI_LONG_DOUBLE, Basic::float80);
    case Basic::two_ints: return map_of_two(MPI_INT, Basic::int32);
    case Basic::two_floats: return map_of_two(MPI_REAL, Basic::float32);
    case Basic::two_doubles: return map_of_two(MPI_DOUBLE_PRECISION, Basic::float64);
    default: return map_of_element(type);
  }
}

}  // namespace

std::array<Datatype*, 512> make_predefined_types() {
  std::array<Datatype*, 512> types{};
  for (const Named& each : named) {
    auto* const type = new Datatype(map_of(each));
    type->basic = each.basic;
    type->is_absent = each.basic == Basic::none;
    type->is_committed = !type->is_absent;
    type->is_predefined = true;
    type->number = static_cast<std::uint16_t>(number_of(each.handle));
    type->name = each.name;
    types[number_of(each.handle) & 511] = type;
  }
  return types;
}

}  // namespace tonari::mpi
