#include "mpi/datatypes/derived.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tonari::mpi {

void Bounds::add(const TypeMap& type, MPI_Count first, MPI_Count last) {
  if (type.size == 0 && !type.has_set_bounds) return;
  if (are_set_ && !type.has_set_bounds) return;
  if (type.has_set_bounds && !are_set_) is_empty_ = true;
  are_set_ = type.has_set_bounds;
  const MPI_Count lower = sum(first, type.lower);
  const MPI_Count upper = sum(last, sum(type.lower, type.extent));
  lower_ = is_empty_ ? lower : std::min(lower_, lower);
  upper_ = is_empty_ ? upper : std::max(upper_, upper);
  is_empty_ = false;
}

void Bounds::add_block(const TypeMap& type, MPI_Count displacement, MPI_Count count) {
  if (count == 0) return;
  const MPI_Count other = sum(displacement, product(count - 1, type.extent));
  add(type, std::min(displacement, other), std::max(displacement, other));
}

TypeMap map_of(const Datatype& old, MPI_Count elements) {
  TypeMap map;
  if (elements == 0) return map;
  map.size = data_bytes(elements, old.size);
  map.alignment = old.alignment;
  map.basic = old.basic;
  map.signature = old.signature.repeated(static_cast<std::size_t>(elements));
  return map;
}

void set_bounds(TypeMap& map, const Bounds& bounds) {
  map.lower = bounds.lower();
  map.extent = difference(bounds.upper(), bounds.lower());
  map.has_set_bounds = bounds.are_set();
}

MPI_Datatype make_type(TypeMap map, Construction construction) {
  map.is_plain = map.lower == 0 && map.extent == static_cast<MPI_Count>(map.size) && map.layout.is_dense() &&
                 map.layout.true_lower() == 0;
  auto made = Ref<Datatype>::adopt(new Datatype(std::move(map)));
  made->construction = std::make_shared<const Construction>(std::move(construction));
  return made.take();
}

Datatype* copy_of(const Datatype& type) {
  auto* const copy = new Datatype(static_cast<const TypeMap&>(type));
  copy->construction = type.construction;
  copy->is_committed = type.is_committed;
  return copy;
}

void refuse_absent(const Datatype& type, const char* argument) {
  if (!type.is_absent) return;
  throw Failure(MPI_ERR_TYPE, fmt::format("{} is {}, which this platform has not", argument, type.name));
}

}  // namespace tonari::mpi
