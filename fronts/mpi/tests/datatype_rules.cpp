// ranks: 1
#include "check.hpp"

#include <pthread.h>

#include <climits>
#include <cstring>
#include <vector>

// Rules of datatypes that random ones do not show: bounds, large counts, errors, handles, predefined types.
namespace {

constexpr int structs_in_structs = 6000;

// Expects an error of this class.
#define CHECK_ERROR(call, expected) CHECK_EQUAL(call, static_cast<int>(expected))

void check_extent(MPI_Datatype type, MPI_Aint lower, MPI_Aint extent) {
  MPI_Aint found_lower = -1;
  MPI_Aint found_extent = -1;
  MPI_Type_get_extent(type, &found_lower, &found_extent);
  CHECK_EQUAL(found_lower, lower);
  CHECK_EQUAL(found_extent, extent);
}

MPI_Datatype structure(std::vector<int> lengths, std::vector<MPI_Aint> places, std::vector<MPI_Datatype> types) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), places.data(), types.data(), &made);
  return made;
}

void check_bounds() {
  MPI_Datatype type = structure({1, 1}, {0, 8}, {MPI_DOUBLE, MPI_CHAR});
  check_extent(type, 0, 16);
  MPI_Type_free(&type);
  type = structure({1, 1}, {1, 9}, {MPI_DOUBLE, MPI_CHAR});
  check_extent(type, 1, 16);
  MPI_Type_free(&type);
  type = structure({1, 1}, {-3, 9}, {MPI_DOUBLE, MPI_CHAR});
  check_extent(type, -3, 16);
  MPI_Type_free(&type);
  type = structure({1, 0}, {0, 9}, {MPI_CHAR, MPI_DOUBLE});
  check_extent(type, 0, 1);
  MPI_Type_free(&type);
  // Only structs are padded.
  MPI_Type_create_hvector(2, 1, 5, MPI_INT, &type);
  check_extent(type, 0, 9);
  MPI_Type_free(&type);
  MPI_Type_vector(3, 2, -4, MPI_INT, &type);
  check_extent(type, -32, 40);
  MPI_Type_free(&type);
  // Bounds that the program has set hide the others.
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_INT, -8, 20, &resized);
  type = structure({1, 1}, {100, 0}, {resized, MPI_INT});
  check_extent(type, 92, 20);
  MPI_Type_free(&type);
  MPI_Type_contiguous(0, resized, &type);
  check_extent(type, 0, 0);
  MPI_Type_free(&type);
  MPI_Type_free(&resized);
  CHECK(resized == MPI_DATATYPE_NULL);
}

void check_large_counts() {
  constexpr MPI_Count huge = MPI_Count{1} << 32;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Datatype vector = MPI_DATATYPE_NULL;
  MPI_Type_vector_c(MPI_Count{1} << 26, 1, 2, MPI_DOUBLE_INT, &vector);
  MPI_Type_contiguous_c(huge, vector, &type);
  MPI_Type_commit(&type);
  MPI_Count size = 0;
  MPI_Type_size_c(type, &size);
  CHECK_EQUAL(size, (MPI_Count{1} << 58) * 12);
  int small_size = 0;
  MPI_Type_size(type, &small_size);
  CHECK_EQUAL(small_size, int{MPI_UNDEFINED});
  MPI_Status status;
  MPI_Status_set_elements_c(&status, MPI_BYTE, (MPI_Count{1} << 61) + 8);
  MPI_Count elements = 0;
  MPI_Get_elements_c(&status, type, &elements);
  MPI_Count left = ((MPI_Count{1} << 61) + 8) % 12;
  const MPI_Count pairs = ((MPI_Count{1} << 61) + 8) / 12;
  CHECK_EQUAL(elements, left == 0 ? 2 * pairs : left == 8 ? 2 * pairs + 1 : MPI_Count{MPI_UNDEFINED});
  int few = 0;
  MPI_Get_elements(&status, type, &few);
  CHECK_EQUAL(few, int{MPI_UNDEFINED});
  int combiner = 0;
  int n[3];
  CHECK_ERROR(MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &combiner), MPI_ERR_TYPE);
  MPI_Count m[4];
  MPI_Type_get_envelope_c(type, &m[0], &m[1], &m[2], &m[3], &combiner);
  CHECK(m[0] == 0 && m[1] == 0 && m[2] == 1 && m[3] == 1 && combiner == MPI_COMBINER_CONTIGUOUS);
  MPI_Type_get_envelope(vector, &n[0], &n[1], &n[2], &combiner);  // large, but an int holds its counts
  CHECK(n[0] == 3 && n[1] == 0 && n[2] == 1 && combiner == MPI_COMBINER_VECTOR);
  MPI_Type_free(&type);
  MPI_Type_free(&vector);

  // An element of 2^62 bytes that are far apart, of which a few bytes are packed.
  MPI_Type_create_hvector_c(3, 1, MPI_Count{1} << 60, MPI_CHAR, &type);
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_true_extent(type, &lower, &extent);
  CHECK_EQUAL(extent, (MPI_Aint{1} << 61) + 1);
  MPI_Type_free(&type);

  // Too wide: never wrapped.
  CHECK_ERROR(MPI_Type_contiguous_c(MPI_Count{1} << 62, MPI_DOUBLE, &type), MPI_ERR_VALUE_TOO_LARGE);
  CHECK_ERROR(MPI_Type_create_hvector_c(9, 1, MPI_Count{1} << 60, MPI_CHAR, &type), MPI_ERR_VALUE_TOO_LARGE);
  CHECK_ERROR(MPI_Type_vector_c(2, 1, MPI_Count{1} << 61, MPI_DOUBLE, &type), MPI_ERR_VALUE_TOO_LARGE);
  CHECK_ERROR(MPI_Type_create_resized(MPI_INT, LONG_MAX, 1, &type), MPI_ERR_VALUE_TOO_LARGE);
  MPI_Count sizes[] = {huge, huge};
  MPI_Count parts[] = {1, 1};
  MPI_Count starts[] = {0, 0};
  CHECK_ERROR(MPI_Type_create_subarray_c(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type),
              MPI_ERR_VALUE_TOO_LARGE);
  MPI_Count lengths[] = {MPI_Count{1} << 61, MPI_Count{1} << 61};
  MPI_Count places[] = {0, 0};
  MPI_Datatype types[] = {MPI_SHORT, MPI_SHORT};
  CHECK_ERROR(MPI_Type_create_struct_c(2, lengths, places, types, &type), MPI_ERR_VALUE_TOO_LARGE);
  CHECK_ERROR(MPI_Type_indexed_c(2, lengths, places, MPI_SHORT, &type), MPI_ERR_VALUE_TOO_LARGE);
}

void check_errors() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  CHECK_ERROR(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
  CHECK_ERROR(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
  CHECK_ERROR(MPI_Type_contiguous(1, MPI_INT, nullptr), MPI_ERR_ARG);
  int lengths[] = {1, -1};
  int places[] = {0, 4};
  CHECK_ERROR(MPI_Type_indexed(2, lengths, places, MPI_INT, &type), MPI_ERR_ARG);
  CHECK_ERROR(MPI_Type_indexed(2, nullptr, places, MPI_INT, &type), MPI_ERR_ARG);
  MPI_Aint offsets[] = {0, 4};
  MPI_Datatype types[] = {MPI_INT, MPI_DATATYPE_NULL};
  lengths[1] = 1;
  CHECK_ERROR(MPI_Type_create_struct(2, lengths, offsets, types, &type), MPI_ERR_TYPE);
  int sizes[] = {4};
  int parts[] = {3};
  int starts[] = {2};
  CHECK_ERROR(MPI_Type_create_subarray(1, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
  starts[0] = 1;
  CHECK_ERROR(MPI_Type_create_subarray(1, sizes, parts, starts, 7, MPI_INT, &type), MPI_ERR_ARG);
  int kinds[] = {MPI_DISTRIBUTE_BLOCK};
  int arguments[] = {1};
  int processes[] = {2};
  CHECK_ERROR(MPI_Type_create_darray(2, 0, 1, sizes, kinds, arguments, processes, MPI_ORDER_C, MPI_INT, &type),
              MPI_ERR_ARG);  // two blocks of one element
  CHECK_ERROR(MPI_Type_create_darray(3, 0, 1, sizes, kinds, arguments, processes, MPI_ORDER_C, MPI_INT, &type),
              MPI_ERR_ARG);
  CHECK(type == MPI_DATATYPE_NULL);
  type = MPI_INT;
  CHECK_ERROR(MPI_Type_free(&type), MPI_ERR_TYPE);
  type = MPI_DATATYPE_NULL;
  CHECK_ERROR(MPI_Type_free(&type), MPI_ERR_TYPE);
  CHECK_ERROR(MPI_Type_commit(&type), MPI_ERR_TYPE);

  char memory[16] = {};
  int position = 0;
  MPI_Type_contiguous(2, MPI_INT, &type);
  CHECK_ERROR(MPI_Pack(memory, 1, type, memory, 16, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
  MPI_Type_commit(&type);
  position = 9;
  CHECK_ERROR(MPI_Pack(memory, 1, type, memory, 16, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
  CHECK_ERROR(MPI_Unpack(memory, 16, &position, memory, 1, type, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
  CHECK_EQUAL(position, 9);
  int integers[1];
  MPI_Datatype parts_of[1];
  CHECK_ERROR(MPI_Type_get_contents(type, 0, 0, 1, integers, nullptr, parts_of), MPI_ERR_ARG);
  CHECK_ERROR(MPI_Type_get_contents(MPI_INT, 0, 0, 0, nullptr, nullptr, nullptr), MPI_ERR_TYPE);
  MPI_Type_free(&type);
}

void check_handles() {
  // A type lives on in the types that were made of it, and contents are handles of their own.
  MPI_Datatype inner = MPI_DATATYPE_NULL;
  MPI_Datatype outer = MPI_DATATYPE_NULL;
  MPI_Type_vector(2, 1, 2, MPI_INT, &inner);
  MPI_Type_contiguous(3, inner, &outer);
  MPI_Type_free(&inner);
  int integers[1];
  MPI_Datatype parts[1];
  MPI_Type_get_contents(outer, 1, 0, 1, integers, nullptr, parts);
  CHECK_EQUAL(integers[0], 3);
  check_extent(parts[0], 0, 12);
  MPI_Type_free(&parts[0]);
  MPI_Type_get_contents(outer, 1, 0, 1, integers, nullptr, parts);
  MPI_Type_free(&outer);
  check_extent(parts[0], 0, 12);
  MPI_Type_free(&parts[0]);
  // A handle stays committed or not, but for its copies.
  MPI_Datatype copy = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &inner);
  MPI_Type_commit(&inner);
  MPI_Type_dup(inner, &copy);
  int position = 0;
  int values[2] = {5, 6};
  char packed[8];
  MPI_Pack(values, 1, copy, packed, 8, &position, MPI_COMM_WORLD);
  CHECK_EQUAL(position, 8);
  MPI_Type_free(&inner);
  MPI_Type_free(&copy);

  // So deep that destructors which call each other would overflow the stack.
  MPI_Type_contiguous(1, MPI_INT, &inner);
  for (int i = 0; i < 300000; ++i) {
    MPI_Datatype next = MPI_DATATYPE_NULL;
    MPI_Type_dup(inner, &next);
    MPI_Type_free(&inner);
    inner = next;
  }
  MPI_Type_free(&inner);
}

// Structs in structs are walked by recursion, which must not become deep. So a thread with a small stack walks them.
void* walk_and_free(void* argument) {
  MPI_Datatype type = *static_cast<MPI_Datatype*>(argument);
  MPI_Status status;
  MPI_Status_set_elements(&status, type, 2);
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  CHECK_EQUAL(bytes, 12);  // the int of the innermost struct and the double after it
  MPI_Type_free(&type);
  return nullptr;
}

void check_depth() {
  MPI_Datatype type = structure({1}, {0}, {MPI_INT});
  for (int i = 0; i < structs_in_structs; ++i) {
    MPI_Datatype next = structure({1, 1}, {8, 0}, {type, i % 2 == 0 ? MPI_DOUBLE : MPI_INT});
    MPI_Type_free(&type);
    type = next;
  }
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_t thread;
  CHECK_EQUAL(pthread_create(&thread, &attributes, walk_and_free, &type), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

void check_predefined() {
  for (int number = 0x201; number < 0x2ff; ++number) {
    const auto type = reinterpret_cast<MPI_Datatype>(static_cast<std::intptr_t>(number));
    MPI_Count size = -1;
    if (MPI_Type_size_x(type, &size) != MPI_SUCCESS) continue;
    CHECK(size > 0 || size == MPI_UNDEFINED);
  }
  int size = 0;
  MPI_Type_size(MPI_COMPLEX32, &size);
  CHECK_EQUAL(size, int{MPI_UNDEFINED});
  MPI_Datatype type = MPI_DATATYPE_NULL;
  CHECK_ERROR(MPI_Type_contiguous(2, MPI_COMPLEX32, &type), MPI_ERR_TYPE);

  MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
  CHECK(type == MPI_REAL8);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &type);
  CHECK(type == MPI_INTEGER2);
  MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 16, &type);
  CHECK(type == MPI_COMPLEX16);
  CHECK_ERROR(MPI_Type_match_size(MPI_TYPECLASS_REAL, 5, &type), MPI_ERR_ARG);
  MPI_Type_get_value_index(MPI_LONG, MPI_INT, &type);
  CHECK(type == MPI_LONG_INT);
  MPI_Type_get_value_index(MPI_INT, MPI_INT, &type);
  CHECK(type == MPI_2INT);
  MPI_Type_get_value_index(MPI_INT, MPI_FLOAT, &type);
  CHECK(type == MPI_DATATYPE_NULL);
}

void check_fortran_type(MPI_Datatype type, int combiner, std::vector<int> arguments, int bytes) {
  int n[3];
  int found = 0;
  CHECK(type != MPI_DATATYPE_NULL);
  MPI_Type_get_envelope(type, &n[0], &n[1], &n[2], &found);
  CHECK_EQUAL(found, combiner);
  CHECK_EQUAL(n[0], static_cast<int>(arguments.size()));
  CHECK(n[1] == 0 && n[2] == 0);
  std::vector<int> integers(arguments.size());
  MPI_Type_get_contents(type, n[0], 0, 0, integers.data(), nullptr, nullptr);
  CHECK(integers == arguments);
  int size = 0;
  MPI_Type_size(type, &size);
  CHECK_EQUAL(size, bytes);
  MPI_Datatype copy = type;
  CHECK_ERROR(MPI_Type_free(&copy), MPI_ERR_TYPE);
  char from[32] = {1, 2, 3};  // it is committed
  char to[32];
  int position = 0;
  MPI_Pack(from, 1, type, to, 32, &position, MPI_COMM_WORLD);
  CHECK_EQUAL(position, bytes);
}

void check_fortran_types() {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  const int ranges[] = {1, 2, 4, 9, 18, 38};
  const int sizes[] = {1, 1, 2, 4, 8, 16};
  for (int i = 0; i < 6; ++i) {
    MPI_Type_create_f90_integer(ranges[i], &type);
    check_fortran_type(type, MPI_COMBINER_F90_INTEGER, {ranges[i]}, sizes[i]);
  }
  CHECK_ERROR(MPI_Type_create_f90_integer(39, &type), MPI_ERR_ARG);
  MPI_Type_create_f90_real(6, 30, &type);
  check_fortran_type(type, MPI_COMBINER_F90_REAL, {6, 30}, 4);
  MPI_Datatype again = MPI_DATATYPE_NULL;
  MPI_Type_create_f90_real(6, 30, &again);
  CHECK(type == again);
  MPI_Type_create_f90_real(6, MPI_UNDEFINED, &type);
  check_fortran_type(type, MPI_COMBINER_F90_REAL, {6, MPI_UNDEFINED}, 4);
  MPI_Type_create_f90_real(15, 300, &type);
  check_fortran_type(type, MPI_COMBINER_F90_REAL, {15, 300}, 8);
  MPI_Type_create_f90_real(33, 4000, &type);
  check_fortran_type(type, MPI_COMBINER_F90_REAL, {33, 4000}, 16);
  MPI_Type_create_f90_complex(15, 307, &type);
  check_fortran_type(type, MPI_COMBINER_F90_COMPLEX, {15, 307}, 16);
  CHECK_ERROR(MPI_Type_create_f90_real(34, 10, &type), MPI_ERR_ARG);
  CHECK_ERROR(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
}

template <class T>
std::vector<unsigned char> external(const T& value, MPI_Datatype type) {
  std::vector<unsigned char> bytes(64);
  MPI_Aint position = 0;
  MPI_Pack_external("external32", &value, 1, type, bytes.data(), 64, &position);
  bytes.resize(static_cast<std::size_t>(position));
  T again{};
  position = 0;
  MPI_Unpack_external("external32", bytes.data(), 64, &position, &again, 1, type);
  CHECK_EQUAL(position, static_cast<MPI_Aint>(bytes.size()));
  CHECK(again == value);
  return bytes;
}

void check_external_patterns() {
  using Bytes = std::vector<unsigned char>;
  CHECK(external(short{0x1234}, MPI_SHORT) == (Bytes{0x12, 0x34}));
  CHECK(external(-2, MPI_INT) == (Bytes{0xff, 0xff, 0xff, 0xfe}));
  CHECK(external(-5L, MPI_LONG) == (Bytes{0xff, 0xff, 0xff, 0xfb}));
  CHECK(external(0xfedcba98UL, MPI_UNSIGNED_LONG) == (Bytes{0xfe, 0xdc, 0xba, 0x98}));
  CHECK(external(0x0102030405060708LL, MPI_LONG_LONG) == (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(external(0x0102030405060708L, MPI_INT64_T) == (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  CHECK(external(L'\u20ac', MPI_WCHAR) == (Bytes{0x20, 0xac}));
  CHECK(external(true, MPI_C_BOOL) == (Bytes{1}));
  CHECK(external(1.0F, MPI_FLOAT) == (Bytes{0x3f, 0x80, 0, 0}));
  CHECK(external(-2.5, MPI_DOUBLE) == (Bytes{0xc0, 0x04, 0, 0, 0, 0, 0, 0}));
  CHECK(external(1.0L, MPI_LONG_DOUBLE) == (Bytes{0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  // 1 + 2^-63: the last bit of an 80-bit number.
  CHECK(external(1.0L + 0x1p-63L, MPI_LONG_DOUBLE) == (Bytes{0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0}));
  CHECK(external(-0x1p-16400L, MPI_LONG_DOUBLE).size() == 16);
  struct Pair {
    float value;
    int index;
    bool operator==(const Pair&) const = default;
  };
  CHECK(external(Pair{1.0F, 7}, MPI_FLOAT_INT) == (Bytes{0x3f, 0x80, 0, 0, 0, 0, 0, 7}));

  const long wide = 1L << 32;
  char bytes[8];
  MPI_Aint position = 0;
  CHECK_ERROR(MPI_Pack_external("external32", &wide, 1, MPI_LONG, bytes, 8, &position), MPI_ERR_CONVERSION);
  CHECK_ERROR(MPI_Pack_external("native", &wide, 1, MPI_LONG, bytes, 8, &position), MPI_ERR_ARG);
  CHECK_ERROR(MPI_Pack_external("external32", &wide, 1, MPI_INT64_T, bytes, 7, &position), MPI_ERR_TRUNCATE);
  CHECK_EQUAL(position, MPI_Aint{0});
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_bounds();
  check_large_counts();
  check_errors();
  check_handles();
  check_depth();
  check_predefined();
  check_fortran_types();
  check_external_patterns();
  MPI_Finalize();
}
