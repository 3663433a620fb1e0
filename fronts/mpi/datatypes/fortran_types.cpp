#include "functions.hpp"
#include "mpi/datatypes/derived.hpp"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <tuple>

// Predefined types by the precision and range that a Fortran program asks for, by size, and of values with an index.
namespace tonari::mpi {

namespace {

using Role = Construction::Role;

/// The types that MPI_Type_create_f90_* have returned. They live until the process ends, and the same arguments give
/// the same handle, as the standard advises.
class FortranTypes {
 public:
  MPI_Datatype get(int combiner, int precision, int range, MPI_Datatype named);

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, Datatype*> types_;
};

MPI_Datatype FortranTypes::get(int combiner, int precision, int range, MPI_Datatype named) {
  const std::lock_guard lock(mutex_);
  Datatype*& type = types_[{combiner, precision, range}];
  if (type == nullptr) {
    Construction construction(combiner, false);
    if (combiner != MPI_COMBINER_F90_INTEGER) construction.add(Role::integer, precision);
    construction.add(Role::integer, range);
    auto made = Ref<Datatype>::adopt(copy_of(*find(named)));
    made->construction = std::make_shared<const Construction>(std::move(construction));
    made->is_predefined = true;
    made->make_permanent();
    type = made.take();
  }
  return type;
}

FortranTypes& fortran_types() {
  static auto* const types = new FortranTypes;
  return *types;
}

/// A kind of REAL: precision and range, as Fortran's functions of these names return them on this platform.
struct RealKind {
  int precision;  // decimal digits
  int range;      // decimal exponents
  MPI_Datatype real;
  MPI_Datatype complex;
};
const RealKind real_kinds[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};

const RealKind& real_kind(int precision, int range) {
  if (precision == MPI_UNDEFINED && range == MPI_UNDEFINED) {
    throw Failure(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED: one of them must be given");
  }
  for (const RealKind& kind : real_kinds) {
    if (precision <= kind.precision && range <= kind.range) return kind;
  }
  throw Failure(MPI_ERR_ARG, fmt::format("p is {}, r is {}: this platform's reals have at most 33 digits and a decimal "
                                         "exponent of 4931",
                                         precision, range));
}

MPI_Datatype integer_of(int range) {
  if (range <= 2) return MPI_INTEGER1;
  if (range <= 4) return MPI_INTEGER2;
  if (range <= 9) return MPI_INTEGER4;
  if (range <= 18) return MPI_INTEGER8;
  if (range <= 38) return MPI_INTEGER16;
  throw Failure(MPI_ERR_ARG, fmt::format("r is {}: this platform's integers have at most 38 digits", range));
}

struct ValueIndex {
  MPI_Datatype value;
  MPI_Datatype index;
  MPI_Datatype pair;
};
const ValueIndex pairs[] = {
    {MPI_FLOAT, MPI_INT, MPI_FLOAT_INT},      {MPI_DOUBLE, MPI_INT, MPI_DOUBLE_INT},
    {MPI_LONG, MPI_INT, MPI_LONG_INT},        {MPI_INT, MPI_INT, MPI_2INT},
    {MPI_SHORT, MPI_INT, MPI_SHORT_INT},      {MPI_LONG_DOUBLE, MPI_INT, MPI_LONG_DOUBLE_INT},
    {MPI_REAL, MPI_REAL, MPI_2REAL},          {MPI_DOUBLE_PRECISION, MPI_DOUBLE_PRECISION, MPI_2DOUBLE_PRECISION},
    {MPI_INTEGER, MPI_INTEGER, MPI_2INTEGER},
};

}  // namespace

void type_create_f90_integer(int r, MPI_Datatype* newtype) {
  *newtype = fortran_types().get(MPI_COMBINER_F90_INTEGER, 0, r, integer_of(r));
}

void type_create_f90_real(int p, int r, MPI_Datatype* newtype) {
  *newtype = fortran_types().get(MPI_COMBINER_F90_REAL, p, r, real_kind(p, r).real);
}

void type_create_f90_complex(int p, int r, MPI_Datatype* newtype) {
  const MPI_Datatype complex = real_kind(p, r).complex;
  refuse_absent(*find(complex), "the type with that precision and range");
  *newtype = fortran_types().get(MPI_COMBINER_F90_COMPLEX, p, r, complex);
}

void type_match_size(int typeclass, int size, MPI_Datatype* datatype) {
  const auto choose = [&](std::initializer_list<MPI_Datatype> candidates) {
    for (const MPI_Datatype candidate : candidates) {
      const Datatype& type = *find(candidate);
      if (!type.is_absent && type.size == static_cast<std::size_t>(size)) return candidate;
    }
    throw Failure(MPI_ERR_ARG, fmt::format("size is {}: this platform has no type of that class and size", size));
  };
  switch (typeclass) {
    case MPI_TYPECLASS_INTEGER:
      *datatype = choose({MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16});
      break;
    case MPI_TYPECLASS_REAL: *datatype = choose({MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16}); break;
    case MPI_TYPECLASS_COMPLEX: *datatype = choose({MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32}); break;
    default:
      throw Failure(MPI_ERR_ARG, fmt::format("typeclass is {}: it must be MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL or "
                                             "MPI_TYPECLASS_COMPLEX",
                                             typeclass));
  }
}

void type_get_value_index(Datatype& value_type, Datatype& index_type, MPI_Datatype* pair_type) {
  *pair_type = MPI_DATATYPE_NULL;
  for (const ValueIndex& each : pairs) {
    if (find(each.value) == &value_type && find(each.index) == &index_type) *pair_type = each.pair;
  }
}

}  // namespace tonari::mpi
