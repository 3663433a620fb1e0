// ranks: 1 2
#include "check.hpp"

#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

// Predefined operations on every type that they are defined for, their refusal of others, and the life of operations.
namespace {

template <class T>
void check_local(MPI_Datatype type, MPI_Op op, T left, T right, T expected) {
  // Odd addresses: the elements of a buffer need no alignment here. More elements than a vector register has.
  constexpr int count = 37;
  std::vector<char> in(sizeof(T) * count + 1);
  std::vector<char> inout(in.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(&in[1 + i * sizeof(T)], &left, sizeof(T));
    std::memcpy(&inout[1 + i * sizeof(T)], &right, sizeof(T));
  }
  MPI_Reduce_local(&in[1], &inout[1], count, type, op);
  for (std::size_t i = 0; i < count; ++i) {
    T result{};
    std::memcpy(&result, &inout[1 + i * sizeof(T)], sizeof(T));
    CHECK(result == expected);
  }
}

template <class T>
void check_arithmetic(MPI_Datatype type) {
  check_local<T>(type, MPI_SUM, T(3), T(4), T(7));
  check_local<T>(type, MPI_PROD, T(3), T(4), T(12));
}
template <class T>
void check_order(MPI_Datatype type) {
  check_local<T>(type, MPI_MAX, T(3), T(4), T(4));
  check_local<T>(type, MPI_MAX, T(5), T(4), T(5));
  check_local<T>(type, MPI_MIN, T(3), T(4), T(3));
  check_local<T>(type, MPI_MIN, T(5), T(4), T(4));
}
template <class T>
void check_logic(MPI_Datatype type) {
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      check_local<T>(type, MPI_LAND, T(left), T(right), T(left && right));
      check_local<T>(type, MPI_LOR, T(left), T(right), T(left || right));
      check_local<T>(type, MPI_LXOR, T(left), T(right), T(left != right));
    }
  }
}
template <class T>
void check_bits(MPI_Datatype type) {
  check_local<T>(type, MPI_BAND, T(12), T(10), T(8));
  check_local<T>(type, MPI_BOR, T(12), T(10), T(14));
  check_local<T>(type, MPI_BXOR, T(12), T(10), T(6));
}
template <class T>
void check_integer(MPI_Datatype type) {
  check_arithmetic<T>(type);
  check_order<T>(type);
  check_logic<T>(type);
  check_local<T>(type, MPI_LAND, T(2), T(4), T(1));
  check_bits<T>(type);
}
template <class T>
void check_real(MPI_Datatype type) {
  check_arithmetic<T>(type);
  check_order<T>(type);
}
template <class T>
void check_complex(MPI_Datatype type) {
  using C = std::complex<T>;
  check_local<C>(type, MPI_SUM, C(1, 2), C(3, 5), C(4, 7));
  check_local<C>(type, MPI_PROD, C(1, 2), C(3, 5), C(-7, 11));
}

template <class T, class Index>
struct Pair {
  T value;
  Index index;
  bool operator==(const Pair& other) const { return value == other.value && index == other.index; }
};
template <class T, class Index = int>
void check_pair(MPI_Datatype type) {
  using P = Pair<T, Index>;
  check_local<P>(type, MPI_MAXLOC, {T(3), Index(1)}, {T(4), Index(2)}, {T(4), Index(2)});
  check_local<P>(type, MPI_MAXLOC, {T(5), Index(7)}, {T(4), Index(2)}, {T(5), Index(7)});
  check_local<P>(type, MPI_MAXLOC, {T(4), Index(7)}, {T(4), Index(2)}, {T(4), Index(2)});
  check_local<P>(type, MPI_MINLOC, {T(3), Index(1)}, {T(4), Index(2)}, {T(3), Index(1)});
  check_local<P>(type, MPI_MINLOC, {T(5), Index(7)}, {T(4), Index(2)}, {T(4), Index(2)});
  check_local<P>(type, MPI_MINLOC, {T(4), Index(1)}, {T(4), Index(2)}, {T(4), Index(1)});
}

void check_types() {
  check_integer<signed char>(MPI_SIGNED_CHAR);
  check_integer<unsigned char>(MPI_UNSIGNED_CHAR);
  check_integer<short>(MPI_SHORT);
  check_integer<int>(MPI_INT);
  check_integer<long>(MPI_LONG);
  check_integer<long long>(MPI_LONG_LONG);
  check_integer<unsigned short>(MPI_UNSIGNED_SHORT);
  check_integer<unsigned>(MPI_UNSIGNED);
  check_integer<unsigned long>(MPI_UNSIGNED_LONG);
  check_integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
  check_integer<std::int8_t>(MPI_INT8_T);
  check_integer<std::uint64_t>(MPI_UINT64_T);
  check_integer<MPI_Aint>(MPI_AINT);
  check_integer<MPI_Count>(MPI_COUNT);
  check_integer<MPI_Offset>(MPI_OFFSET);
  check_integer<int>(MPI_INTEGER);
  __extension__ using Int128 = __int128;
  check_integer<Int128>(MPI_INTEGER16);
  check_real<float>(MPI_FLOAT);
  check_real<double>(MPI_DOUBLE);
  check_real<long double>(MPI_LONG_DOUBLE);
  check_real<double>(MPI_DOUBLE_PRECISION);
#ifdef __SIZEOF_FLOAT128__
  __extension__ using Float128 = __float128;
  check_real<Float128>(MPI_REAL16);
#endif
  check_complex<float>(MPI_C_FLOAT_COMPLEX);
  check_complex<double>(MPI_C_DOUBLE_COMPLEX);
  check_complex<long double>(MPI_C_LONG_DOUBLE_COMPLEX);
  check_complex<double>(MPI_CXX_DOUBLE_COMPLEX);
  check_complex<float>(MPI_COMPLEX);
  check_logic<bool>(MPI_C_BOOL);
  check_logic<int>(MPI_LOGICAL);
  check_bits<unsigned char>(MPI_BYTE);
  check_pair<float>(MPI_FLOAT_INT);
  check_pair<double>(MPI_DOUBLE_INT);
  check_pair<long>(MPI_LONG_INT);
  check_pair<int>(MPI_2INT);
  check_pair<short>(MPI_SHORT_INT);
  check_pair<long double>(MPI_LONG_DOUBLE_INT);
  check_pair<float, float>(MPI_2REAL);
  check_pair<double, double>(MPI_2DOUBLE_PRECISION);
}

// Integers wrap around.
void check_overflow() {
  check_local<short>(MPI_SHORT, MPI_SUM, 32767, 1, -32768);
  check_local<short>(MPI_SHORT, MPI_PROD, -32768, -32768, 0);
  check_local<int>(MPI_INT, MPI_SUM, 2147483647, 1, -2147483647 - 1);
}

void expect_refused(MPI_Op op, MPI_Datatype type, const char* words) {
  double in[4] = {};
  double inout[4] = {};
  CHECK_EQUAL(MPI_Reduce_local(in, inout, 1, type, op), static_cast<int>(MPI_ERR_OP));
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(MPI_ERR_OP, text, &length);
  CHECK(std::strstr(text, words) != nullptr);
  CHECK_EQUAL(MPI_Allreduce(in, inout, 1, type, op, MPI_COMM_WORLD), static_cast<int>(MPI_ERR_OP));
}

void check_errors() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  expect_refused(MPI_BAND, MPI_DOUBLE, "MPI_BAND cannot combine MPI_DOUBLE");
  expect_refused(MPI_MAX, MPI_C_DOUBLE_COMPLEX, "MPI_MAX cannot combine");
  expect_refused(MPI_SUM, MPI_BYTE, "MPI_SUM cannot combine MPI_BYTE");
  expect_refused(MPI_SUM, MPI_C_BOOL, "MPI_SUM cannot combine");
  expect_refused(MPI_MINLOC, MPI_INT, "MPI_MINLOC cannot combine MPI_INT");
  expect_refused(MPI_REPLACE, MPI_INT, "one-sided");
  MPI_Datatype four = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(4, MPI_INT, &four);
  MPI_Type_commit(&four);
  expect_refused(MPI_SUM, four, "MPI_SUM cannot combine a derived datatype");
  MPI_Type_free(&four);
  MPI_Op op = MPI_SUM;
  CHECK_EQUAL(MPI_Op_free(&op), static_cast<int>(MPI_ERR_OP));
  op = MPI_OP_NULL;
  CHECK_EQUAL(MPI_Op_free(&op), static_cast<int>(MPI_ERR_OP));
  int one = 1;
  int two = 2;
  CHECK_EQUAL(MPI_Bcast(&one, 1, MPI_INT, test::ranks(), MPI_COMM_WORLD), static_cast<int>(MPI_ERR_ROOT));
  CHECK_EQUAL(MPI_Bcast(&one, -1, MPI_INT, 0, MPI_COMM_WORLD), static_cast<int>(MPI_ERR_COUNT));
  CHECK_EQUAL(MPI_Bcast(&one, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD), static_cast<int>(MPI_ERR_TYPE));
  CHECK_EQUAL(MPI_Allreduce(&one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), static_cast<int>(MPI_ERR_BUFFER));
  CHECK_EQUAL(MPI_Neighbor_alltoall(&one, 1, MPI_INT, &two, 1, MPI_INT, MPI_COMM_WORLD),
              static_cast<int>(MPI_ERR_TOPOLOGY));
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

// in * 10 + inout shows the order of operands.
extern "C" void append(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<long*>(inout)[i] += 10 * static_cast<long*>(in)[i];
}

void check_user_operation() {
  MPI_Op op = MPI_OP_NULL;
  int commutes = -1;
  MPI_Op_create(append, 0, &op);
  MPI_Op_commutative(op, &commutes);
  CHECK_EQUAL(commutes, 0);
  long in[] = {1, 2};
  long inout[] = {3, 4};
  MPI_Reduce_local(in, inout, 2, MPI_LONG, op);
  CHECK_EQUAL(inout[0], 13);
  CHECK_EQUAL(inout[1], 24);
  MPI_Op_free(&op);
  CHECK(op == MPI_OP_NULL);
  MPI_Op_create(append, 1, &op);
  MPI_Op_commutative(op, &commutes);
  CHECK_EQUAL(commutes, 1);
  MPI_Op_free(&op);
  MPI_Op_commutative(MPI_MAXLOC, &commutes);
  CHECK_EQUAL(commutes, 1);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  check_types();
  check_overflow();
  check_user_operation();
  check_errors();
  MPI_Finalize();
}
