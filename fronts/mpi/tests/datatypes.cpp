// ranks: 1
#include "check.hpp"
#include "mpi/tests/datatype_buffer.hpp"

// Random datatypes against a model: a list of basic elements with byte offsets.
namespace {

using test::Buffer;
using test::Bytes;
using test::Maker;
using test::Model;
using test::Pair;

Bytes pack(Buffer& from, int count, MPI_Datatype type) {
  MPI_Count bytes = 0;
  MPI_Pack_size_c(count, type, MPI_COMM_WORLD, &bytes);
  Bytes packed(static_cast<std::size_t>(bytes) + 3, 0xee);
  MPI_Count position = 2;
  MPI_Pack_c(from.address(), count, type, packed.data(), bytes + 3, &position, MPI_COMM_WORLD);
  CHECK_EQUAL(position, bytes + 2);
  CHECK(packed[0] == 0xee && packed[1] == 0xee && packed.back() == 0xee);
  return {packed.begin() + 2, packed.end() - 1};
}

void check_bounds(const Pair& pair) {
  const Model& model = pair.model;
  MPI_Count size = -1;
  MPI_Count lower = -1;
  MPI_Count extent = -1;
  MPI_Type_size_c(pair.type, &size);
  CHECK_EQUAL(size, model.size());
  MPI_Type_get_extent_c(pair.type, &lower, &extent);
  CHECK_EQUAL(lower, model.lower);
  CHECK_EQUAL(extent, model.extent());
  MPI_Type_get_true_extent_c(pair.type, &lower, &extent);
  CHECK_EQUAL(lower, model.true_lower());
  CHECK_EQUAL(extent, model.true_upper() - model.true_lower());
}

void check_packing(const Pair& pair, int count, std::mt19937& random) {
  Buffer from(pair.model, count);
  from.fill(random);
  const Bytes packed = pack(from, count, pair.type);
  CHECK(packed == from.packed());
  if (!from.is_receivable()) return;
  Buffer to(pair.model, count);
  to.fill(random);
  Buffer expected = to;
  expected.unpack(packed);
  MPI_Count position = 0;
  const auto bytes = static_cast<MPI_Count>(packed.size());
  MPI_Unpack_c(packed.data(), bytes, &position, to.address(), count, pair.type, MPI_COMM_WORLD);
  CHECK_EQUAL(position, bytes);
  CHECK(to.memory == expected.memory);
}

void check_other_type(const Pair& pair, int count, Maker& maker) {
  Buffer from(pair.model, count);
  from.fill(maker.random());
  const Bytes packed = pack(from, count, pair.type);
  Pair other = test::with_same_signature(from.items, maker);
  Buffer to(other.model, 1);
  Buffer expected = to;
  expected.unpack(packed);
  MPI_Count position = 0;
  MPI_Unpack_c(packed.data(), static_cast<MPI_Count>(packed.size()), &position, to.address(), 1, other.type,
               MPI_COMM_WORLD);
  CHECK(to.memory == expected.memory);
  MPI_Type_free(&other.type);
}

void check_external(const Pair& pair, int count, std::mt19937& random) {
  Buffer from(pair.model, count);
  if (!from.is_receivable()) return;
  from.fill(random);
  MPI_Count size = 0;
  MPI_Pack_external_size_c("external32", count, pair.type, &size);
  CHECK_EQUAL(size, count * pair.model.external_size());
  Bytes packed(static_cast<std::size_t>(size));
  MPI_Count position = 0;
  MPI_Pack_external_c("external32", from.address(), count, pair.type, packed.data(), size, &position);
  CHECK_EQUAL(position, size);
  if (!from.has_long_doubles()) CHECK(packed == from.external());
  Buffer to(pair.model, count);
  to.fill(random);
  Buffer expected = to;
  expected.unpack(from.packed());
  position = 0;
  MPI_Unpack_external_c("external32", packed.data(), size, &position, to.address(), count, pair.type);
  CHECK_EQUAL(position, size);
  CHECK(to.memory == expected.memory);
}

void check_counting(const Pair& pair, Maker& maker) {
  const MPI_Count size = pair.model.size();
  const MPI_Count bytes = maker.draw(0, 3 * size + 2);
  MPI_Count elements = 0;
  MPI_Count counted = 0;
  while (size != 0 && counted < bytes) {
    const auto index = static_cast<std::size_t>(elements) % pair.model.items.size();
    counted += pair.model.items[index].bytes;
    ++elements;
  }
  MPI_Status status;
  MPI_Status_set_elements_c(&status, MPI_BYTE, bytes);
  MPI_Count count = 0;
  MPI_Get_elements_c(&status, pair.type, &count);
  CHECK_EQUAL(count, counted == bytes ? elements : MPI_Count{MPI_UNDEFINED});
  MPI_Get_count_c(&status, pair.type, &count);
  const bool is_whole = size == 0 ? bytes == 0 : bytes % size == 0;
  CHECK_EQUAL(count, is_whole ? (size == 0 ? 0 : bytes / size) : MPI_Count{MPI_UNDEFINED});
  if (size == 0) return;
  MPI_Status_set_elements_c(&status, pair.type, elements);
  MPI_Get_count_c(&status, MPI_BYTE, &count);
  CHECK_EQUAL(count, counted);
}

/// The arguments of a constructor, read by one of the two forms.
struct Contents {
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Datatype> types;
  int combiner = 0;
  MPI_Count count(std::size_t index) const {
    return counts.empty() ? static_cast<MPI_Count>(integers[index]) : counts[index];
  }
};

Contents contents_of(MPI_Datatype type, bool large) {
  Contents contents;
  if (large) {
    MPI_Count n[4];
    MPI_Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &contents.combiner);
    contents.integers.resize(static_cast<std::size_t>(n[0]));
    contents.addresses.resize(static_cast<std::size_t>(n[1]));
    contents.counts.resize(static_cast<std::size_t>(n[2]));
    contents.types.resize(static_cast<std::size_t>(n[3]) + 2, MPI_DOUBLE);  // two more must stay
    if (contents.combiner == MPI_COMBINER_NAMED) return contents;
    MPI_Type_get_contents_c(type, n[0], n[1], n[2], n[3] + 2, contents.integers.data(), contents.addresses.data(),
                            contents.counts.data(), contents.types.data());
  } else {
    int n[3];
    MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &contents.combiner);
    contents.integers.resize(static_cast<std::size_t>(n[0]));
    contents.addresses.resize(static_cast<std::size_t>(n[1]));
    contents.types.resize(static_cast<std::size_t>(n[2]) + 2, MPI_DOUBLE);
    if (contents.combiner == MPI_COMBINER_NAMED) return contents;
    MPI_Type_get_contents(type, n[0], n[1], n[2] + 2, contents.integers.data(), contents.addresses.data(),
                          contents.types.data());
  }
  CHECK(contents.types[contents.types.size() - 2] == MPI_DOUBLE && contents.types.back() == MPI_DOUBLE);
  contents.types.resize(contents.types.size() - 2);
  return contents;
}

MPI_Datatype construct_large(const Contents& from, const std::vector<MPI_Datatype>& types) {
  const MPI_Count* const c = from.counts.data();
  const int* const i = from.integers.data();
  MPI_Datatype made = MPI_DATATYPE_NULL;
  switch (from.combiner) {
    case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous_c(c[0], types[0], &made); break;
    case MPI_COMBINER_VECTOR: MPI_Type_vector_c(c[0], c[1], c[2], types[0], &made); break;
    case MPI_COMBINER_HVECTOR: MPI_Type_create_hvector_c(c[0], c[1], c[2], types[0], &made); break;
    case MPI_COMBINER_INDEXED: MPI_Type_indexed_c(c[0], c + 1, c + 1 + c[0], types[0], &made); break;
    case MPI_COMBINER_HINDEXED: MPI_Type_create_hindexed_c(c[0], c + 1, c + 1 + c[0], types[0], &made); break;
    case MPI_COMBINER_INDEXED_BLOCK: MPI_Type_create_indexed_block_c(c[0], c[1], c + 2, types[0], &made); break;
    case MPI_COMBINER_HINDEXED_BLOCK: MPI_Type_create_hindexed_block_c(c[0], c[1], c + 2, types[0], &made); break;
    case MPI_COMBINER_STRUCT: MPI_Type_create_struct_c(c[0], c + 1, c + 1 + c[0], types.data(), &made); break;
    case MPI_COMBINER_RESIZED: MPI_Type_create_resized_c(types[0], c[0], c[1], &made); break;
    case MPI_COMBINER_SUBARRAY:
      MPI_Type_create_subarray_c(i[0], c, c + i[0], c + 2 * i[0], i[1], types[0], &made);
      break;
    case MPI_COMBINER_DARRAY: {
      const int n = i[2];
      MPI_Type_create_darray_c(i[0], i[1], n, c, i + 3, i + 3 + n, i + 3 + 2 * n, i[3 + 3 * n], types[0], &made);
      break;
    }
    default: CHECK(false);
  }
  return made;
}

MPI_Datatype construct_small(const Contents& from, const std::vector<MPI_Datatype>& types) {
  const int* const i = from.integers.data();
  const MPI_Aint* const a = from.addresses.data();
  MPI_Datatype made = MPI_DATATYPE_NULL;
  switch (from.combiner) {
    case MPI_COMBINER_DUP: MPI_Type_dup(types[0], &made); break;
    case MPI_COMBINER_CONTIGUOUS: MPI_Type_contiguous(i[0], types[0], &made); break;
    case MPI_COMBINER_VECTOR: MPI_Type_vector(i[0], i[1], i[2], types[0], &made); break;
    case MPI_COMBINER_HVECTOR: MPI_Type_create_hvector(i[0], i[1], a[0], types[0], &made); break;
    case MPI_COMBINER_INDEXED: MPI_Type_indexed(i[0], i + 1, i + 1 + i[0], types[0], &made); break;
    case MPI_COMBINER_HINDEXED: MPI_Type_create_hindexed(i[0], i + 1, a, types[0], &made); break;
    case MPI_COMBINER_INDEXED_BLOCK: MPI_Type_create_indexed_block(i[0], i[1], i + 2, types[0], &made); break;
    case MPI_COMBINER_HINDEXED_BLOCK: MPI_Type_create_hindexed_block(i[0], i[1], a, types[0], &made); break;
    case MPI_COMBINER_STRUCT: MPI_Type_create_struct(i[0], i + 1, a, types.data(), &made); break;
    case MPI_COMBINER_RESIZED: MPI_Type_create_resized(types[0], a[0], a[1], &made); break;
    case MPI_COMBINER_SUBARRAY: {
      const int n = i[0];
      MPI_Type_create_subarray(n, i + 1, i + 1 + n, i + 1 + 2 * n, i[1 + 3 * n], types[0], &made);
      break;
    }
    case MPI_COMBINER_DARRAY: {
      const int n = i[2];
      MPI_Type_create_darray(i[0], i[1], n, i + 3, i + 3 + n, i + 3 + 2 * n, i + 3 + 3 * n, i[3 + 4 * n], types[0],
                             &made);
      break;
    }
    default: CHECK(false);
  }
  return made;
}

/// Makes an equal type from the contents of a type, down to the named types.
MPI_Datatype rebuild(MPI_Datatype type, Maker& maker) {
  const Contents contents = contents_of(type, maker.coin());
  if (contents.combiner == MPI_COMBINER_NAMED) return type;
  std::vector<MPI_Datatype> parts;
  for (MPI_Datatype part : contents.types) parts.push_back(rebuild(part, maker));
  const MPI_Datatype made =
      contents.counts.empty() ? construct_small(contents, parts) : construct_large(contents, parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Pair part{parts[i], {}};
    if (parts[i] == contents.types[i]) continue;
    Maker::release(part);
    part.type = contents.types[i];
    Maker::release(part);
  }
  return made;
}

void check_rebuilt(const Pair& pair, int count, Maker& maker) {
  Pair again{rebuild(pair.type, maker), pair.model};
  check_bounds(again);
  if (again.type == pair.type) return;
  MPI_Type_commit(&again.type);
  check_packing(again, count, maker.random());
  MPI_Type_free(&again.type);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Maker maker(test::seed());
  MPI_Count items = 0;
  for (int i = 0; i < 2000; ++i) {
    Pair pair = test::make_small(maker);
    items += static_cast<MPI_Count>(pair.model.items.size());
    check_bounds(pair);
    MPI_Type_commit(&pair.type);
    const auto count = static_cast<int>(maker.draw(0, 3));
    check_packing(pair, count, maker.random());
    check_other_type(pair, count, maker);
    check_external(pair, count, maker.random());
    check_counting(pair, maker);
    check_rebuilt(pair, count, maker);
    Maker::release(pair);
  }
  std::printf("%lld basic elements in 2000 types\n", static_cast<long long>(items));
  MPI_Finalize();
}
