#include "functions.hpp"
#include "mpi/datatypes/derived.hpp"
#include "mpi/environment/handle_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

// Datatypes that repeat one type, and structs.
namespace tonari::mpi {

namespace {

using Role = Construction::Role;
using message::Layout;

MPI_Datatype make_strided(const Datatype& old, MPI_Count count, MPI_Count block, MPI_Count stride_bytes,
                          Construction construction) {
  refuse_absent(old, "oldtype");
  TypeMap map = map_of(old, product(count, block));
  map.layout = Layout::strided(static_cast<std::size_t>(count), static_cast<std::size_t>(block), stride_bytes,
                               old.layout, old.extent);
  Bounds bounds;
  if (count != 0) {
    bounds.add_block(old, 0, block);
    bounds.add_block(old, product(count - 1, stride_bytes), block);
  }
  set_bounds(map, bounds);
  return make_type(std::move(map), std::move(construction));
}

void need_array(bool is_there, MPI_Count count, const char* argument) {
  if (!is_there && count != 0) {
    throw Failure(MPI_ERR_ARG, fmt::format("{} is a null pointer, but count is {}", argument, count));
  }
}
void need_length(MPI_Count length, MPI_Count index) {
  if (length >= 0) return;
  throw Failure(MPI_ERR_ARG, fmt::format("array_of_blocklengths[{}] is {}: it must not be negative", index, length));
}

// The displacements of a list of blocks, in bytes.
struct Displacements {
  Counts values;
  MPI_Count unit;  // bytes of a value
  MPI_Count operator[](MPI_Count index) const { return product(values[index], unit); }
};

MPI_Datatype make_listed(const Datatype& old, MPI_Count count, const Counts& lengths,
                         const Displacements& displacements, Construction construction) {
  refuse_absent(old, "oldtype");
  MPI_Count elements = 0;
  MPI_Count first = std::numeric_limits<MPI_Count>::max();
  MPI_Count last = std::numeric_limits<MPI_Count>::min();
  std::vector<Layout::Piece> pieces;
  pieces.reserve(static_cast<std::size_t>(count));
  for (MPI_Count i = 0; i < count; ++i) {
    const MPI_Count block = lengths[i];
    need_length(block, i);
    const MPI_Count bytes = displacements[i];
    elements = sum(elements, block);
    pieces.push_back({bytes, static_cast<std::size_t>(block)});
    if (block == 0) continue;
    const MPI_Count other = sum(bytes, product(block - 1, old.extent));
    first = std::min({first, bytes, other});
    last = std::max({last, bytes, other});
  }
  Bounds bounds;
  if (elements != 0) bounds.add(old, first, last);
  TypeMap map = map_of(old, elements);
  map.layout = Layout::listed(pieces, old.layout, old.extent);
  set_bounds(map, bounds);
  return make_type(std::move(map), std::move(construction));
}

// The same for blocks of one length. The loops have no exits, so that compilers vectorise them.
MPI_Datatype make_blocks(const Datatype& old, MPI_Count count, MPI_Count block, const Displacements& displacements,
                         Construction construction) {
  refuse_absent(old, "oldtype");
  TypeMap map = map_of(old, product(count, block));
  Bounds bounds;
  if (count != 0 && block != 0) {
    const auto [least, most] = displacements.values.minmax(count);
    const MPI_Count one = product(least, displacements.unit);  // none of the others is longer, so their products fit
    const MPI_Count other = product(most, displacements.unit);
    const MPI_Count length = product(block - 1, old.extent);
    const auto [first, last] = std::minmax({one, other, sum(one, length), sum(other, length)});
    bounds.add(old, first, last);
    std::vector<MPI_Aint> offsets(static_cast<std::size_t>(count));
    displacements.values.copy(count, displacements.unit, offsets.data());
    map.layout = Layout::blocks(std::move(offsets), static_cast<std::size_t>(block), old.layout, old.extent);
  }
  set_bounds(map, bounds);
  return make_type(std::move(map), std::move(construction));
}

MPI_Datatype make_indexed(const Datatype& old, MPI_Count count, const Counts& lengths,
                          const Displacements& displacements, Construction construction) {
  if (count != 0) {
    const auto [shortest, longest] = lengths.minmax(count);
    if (shortest == longest && shortest >= 0) {
      return make_blocks(old, count, longest, displacements, std::move(construction));
    }
  }
  return make_listed(old, count, lengths, displacements, std::move(construction));
}

// The upper bound of a struct is aligned as compilers align it, unless the program has set bounds.
void align(TypeMap& map) {
  if (map.has_set_bounds) return;
  const MPI_Count rest = map.extent % map.alignment;
  if (rest != 0) map.extent = sum(map.extent, map.alignment - rest);
}

}  // namespace

void type_contiguous(MPI_Count count, Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  Construction construction(MPI_COMBINER_CONTIGUOUS, large);
  construction.add(Role::count, count).add(oldtype);
  *newtype = make_strided(oldtype, 1, count, 0, std::move(construction));
}

void type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype, MPI_Datatype* newtype,
                 bool large) {
  Construction construction(MPI_COMBINER_VECTOR, large);
  construction.add(Role::count, count).add(Role::count, blocklength).add(Role::count, stride).add(oldtype);
  *newtype = make_strided(oldtype, count, blocklength, product(stride, oldtype.extent), std::move(construction));
}

void type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, Datatype& oldtype,
                         MPI_Datatype* newtype, bool large) {
  Construction construction(MPI_COMBINER_HVECTOR, large);
  construction.add(Role::count, count).add(Role::count, blocklength).add(Role::address, stride).add(oldtype);
  *newtype = make_strided(oldtype, count, blocklength, stride, std::move(construction));
}

void type_indexed(MPI_Count count, Counts array_of_blocklengths, Counts array_of_displacements, Datatype& oldtype,
                  MPI_Datatype* newtype, bool large) {
  need_array(!array_of_blocklengths.is_null(), count, "array_of_blocklengths");
  need_array(!array_of_displacements.is_null(), count, "array_of_displacements");
  Construction construction(MPI_COMBINER_INDEXED, large);
  construction.add(Role::count, count)
      .add(Role::count, array_of_blocklengths, count)
      .add(Role::count, array_of_displacements, count)
      .add(oldtype);
  *newtype = make_indexed(oldtype, count, array_of_blocklengths, {array_of_displacements, oldtype.extent},
                          std::move(construction));
}

void type_create_hindexed(MPI_Count count, Counts array_of_blocklengths, const MPI_Aint* array_of_displacements,
                          Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  need_array(!array_of_blocklengths.is_null(), count, "array_of_blocklengths");
  need_array(array_of_displacements != nullptr, count, "array_of_displacements");
  Construction construction(MPI_COMBINER_HINDEXED, large);
  construction.add(Role::count, count)
      .add(Role::count, array_of_blocklengths, count)
      .add(Role::address, array_of_displacements, count)
      .add(oldtype);
  *newtype =
      make_indexed(oldtype, count, array_of_blocklengths, {Counts(array_of_displacements), 1}, std::move(construction));
}

void type_create_indexed_block(MPI_Count count, MPI_Count blocklength, Counts array_of_displacements, Datatype& oldtype,
                               MPI_Datatype* newtype, bool large) {
  need_array(!array_of_displacements.is_null(), count, "array_of_displacements");
  Construction construction(MPI_COMBINER_INDEXED_BLOCK, large);
  construction.add(Role::count, count)
      .add(Role::count, blocklength)
      .add(Role::count, array_of_displacements, count)
      .add(oldtype);
  *newtype =
      make_blocks(oldtype, count, blocklength, {array_of_displacements, oldtype.extent}, std::move(construction));
}

void type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, const MPI_Aint* array_of_displacements,
                                Datatype& oldtype, MPI_Datatype* newtype, bool large) {
  need_array(array_of_displacements != nullptr, count, "array_of_displacements");
  Construction construction(MPI_COMBINER_HINDEXED_BLOCK, large);
  construction.add(Role::count, count)
      .add(Role::count, blocklength)
      .add(Role::address, array_of_displacements, count)
      .add(oldtype);
  *newtype = make_blocks(oldtype, count, blocklength, {Counts(array_of_displacements), 1}, std::move(construction));
}

void type_create_struct(MPI_Count count, Counts array_of_blocklengths, const MPI_Aint* array_of_displacements,
                        const MPI_Datatype* array_of_types, MPI_Datatype* newtype, bool large) {
  need_array(!array_of_blocklengths.is_null(), count, "array_of_blocklengths");
  need_array(array_of_displacements != nullptr, count, "array_of_displacements");
  need_array(array_of_types != nullptr, count, "array_of_types");
  Construction construction(MPI_COMBINER_STRUCT, large);
  construction.add(Role::count, count)
      .add(Role::count, array_of_blocklengths, count)
      .add(Role::address, array_of_displacements, count);
  TypeMap map;
  Bounds bounds;
  std::vector<Layout::Member> members;
  std::vector<Signature::Part> parts;
  members.reserve(static_cast<std::size_t>(count));
  parts.reserve(static_cast<std::size_t>(count));
  construction.reserve_types(count);
  bool is_first = true;
  for (MPI_Count i = 0; i < count; ++i) {
    Datatype* const type = find(array_of_types[i]);
    if (type == nullptr) {
      fail_handle(MPI_ERR_TYPE, fmt::format("array_of_types[{}]", i), "datatype", array_of_types[i]);
    }
    refuse_absent(*type, "a type of array_of_types");
    construction.add(*type);
    const MPI_Count block = array_of_blocklengths[i];
    need_length(block, i);
    if (block == 0) continue;
    map.size = static_cast<std::size_t>(
        sum(static_cast<MPI_Count>(map.size), static_cast<MPI_Count>(data_bytes(block, type->size))));
    map.alignment = std::max(map.alignment, type->alignment);
    if (type->size != 0) {
      map.basic = is_first || map.basic == type->basic ? type->basic : Basic::none;
      is_first = false;
    }
    bounds.add_block(*type, array_of_displacements[i], block);
    members.push_back({array_of_displacements[i], static_cast<std::size_t>(block), &type->layout, type->extent});
    parts.push_back({static_cast<std::size_t>(block), &type->signature});
  }
  map.layout = Layout::joined(members);
  map.signature = Signature::joined(parts);
  set_bounds(map, bounds);
  align(map);
  *newtype = make_type(std::move(map), std::move(construction));
}

void type_create_resized(Datatype& oldtype, MPI_Count lb, MPI_Count extent, MPI_Datatype* newtype, bool large) {
  refuse_absent(oldtype, "oldtype");
  Construction construction(MPI_COMBINER_RESIZED, large);
  construction.add(Role::address, lb).add(Role::address, extent).add(oldtype);
  (void)sum(lb, extent);  // refuses an upper bound that is too large
  TypeMap map = oldtype;
  map.lower = lb;
  map.extent = extent;
  map.has_set_bounds = true;
  *newtype = make_type(std::move(map), std::move(construction));
}

}  // namespace tonari::mpi
