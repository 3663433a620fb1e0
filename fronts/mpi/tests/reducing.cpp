// ranks: 1 2 3 5 9
#include "shapes.hpp"

#include <cinttypes>

// The collectives that combine data: random lengths, in place or not, in all three forms, with predefined operations
// and with operations of the program, commutative and not, on plain types and on types with gaps. Each rank computes
// the expected results by itself.
namespace {

using test::Form;

int below(int end) { return test::below(test::shared_random, end); }

// An affine map x -> a x + b, modulo 2^32. Combining is composing: associative, not commutative.
struct Affine {
  std::uint32_t a;
  std::uint32_t b;
  bool operator==(const Affine&) const = default;
};
Affine compose(const Affine& left, const Affine& right) { return {left.a * right.a, left.a * right.b + left.b}; }
Affine add(const Affine& left, const Affine& right) { return {left.a + right.a, left.b + right.b}; }

// A type of elements, in which the two numbers of an Affine have these places.
struct Type {
  MPI_Datatype handle;
  MPI_Aint a;
  MPI_Aint b;
  MPI_Aint extent;
  MPI_Aint begin;
  MPI_Aint end;
};
std::vector<Type> types;

void make_types() {
  const auto add_type = [](MPI_Datatype handle, MPI_Aint a, MPI_Aint b, MPI_Aint extent, MPI_Aint begin, MPI_Aint end) {
    MPI_Type_commit(&handle);
    types.push_back({handle, a, b, extent, begin, end});
  };
  types.push_back({MPI_UINT64_T, 0, 4, 8, 0, 8});
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Datatype part = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_UINT32_T, &type);
  add_type(type, 0, 4, 8, 0, 8);
  MPI_Type_vector(2, 1, 3, MPI_UINT32_T, &type);
  add_type(type, 0, 12, 16, 0, 16);
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {8, -4};
  MPI_Type_create_hindexed(2, lengths, places, MPI_UINT32_T, &part);
  MPI_Type_create_resized(part, -4, 24, &type);
  MPI_Type_free(&part);
  add_type(type, 8, -4, 24, -4, 20);
  // Elements that lie inside of each other.
  MPI_Type_vector(2, 1, 5000, MPI_UINT32_T, &part);
  MPI_Type_create_resized(part, 0, 4, &type);
  MPI_Type_free(&part);
  add_type(type, 0, 20000, 4, 0, 20004);
}

// Memory with elements of a type, and the bytes expected there.
class Values {
 public:
  Values(const Type& type, std::size_t count)
      : type_(type),
        bytes_(static_cast<std::size_t>(-type.begin) +
                   (count == 0 ? 0 : (count - 1) * static_cast<std::size_t>(type.extent)) +
                   static_cast<std::size_t>(type.end) + 8,
               std::byte{0xee}),
        expected_(bytes_) {}
  [[nodiscard]] void* address() { return bytes_.data() - type_.begin; }
  void set(std::size_t element, const Affine& value) {
    write(bytes_, element, value);
    write(expected_, element, value);
  }
  void expect(std::size_t element, const Affine& value) { write(expected_, element, value); }
  // Elements whose values are not defined after the collective.
  void ignore(std::size_t element) {
    Affine now{};
    std::memcpy(&now.a, place(bytes_, element, type_.a), 4);
    std::memcpy(&now.b, place(bytes_, element, type_.b), 4);
    expect(element, now);
  }
  [[nodiscard]] bool is_as_expected() const { return bytes_ == expected_; }
  void restore(const Values& old) { bytes_ = old.bytes_; }

 private:
  [[nodiscard]] const std::byte* place(const std::vector<std::byte>& bytes, std::size_t element,
                                       MPI_Aint offset) const {
    return bytes.data() - type_.begin + static_cast<MPI_Aint>(element) * type_.extent + offset;
  }
  void write(std::vector<std::byte>& bytes, std::size_t element, const Affine& value) const {
    std::memcpy(const_cast<std::byte*>(place(bytes, element, type_.a)), &value.a, 4);
    std::memcpy(const_cast<std::byte*>(place(bytes, element, type_.b)), &value.b, 4);
  }
  const Type& type_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> expected_;
};

// The operations of the program. They learn the type by its handle, which must be the one that the program used.
template <Affine combine(const Affine&, const Affine&)>
void combine_all(void* in, void* inout, MPI_Count count, MPI_Datatype handle) {
  const Type* type = nullptr;
  for (const Type& each : types) {
    if (each.handle == handle) type = &each;
  }
  CHECK(type != nullptr);
  for (MPI_Count i = 0; i < count; ++i) {
    const auto at = [&](void* base, MPI_Aint offset) {
      return static_cast<std::byte*>(base) + i * type->extent + offset;
    };
    Affine left{};
    Affine right{};
    std::memcpy(&left.a, at(in, type->a), 4);
    std::memcpy(&left.b, at(in, type->b), 4);
    std::memcpy(&right.a, at(inout, type->a), 4);
    std::memcpy(&right.b, at(inout, type->b), 4);
    const Affine result = combine(left, right);
    std::memcpy(at(inout, type->a), &result.a, 4);
    std::memcpy(at(inout, type->b), &result.b, 4);
  }
}
extern "C" void compose_narrow(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine_all<compose>(in, inout, *count, *type);
}
extern "C" void compose_wide(void* in, void* inout, MPI_Count* count, MPI_Datatype* type) {
  combine_all<compose>(in, inout, *count, *type);
}
extern "C" void add_narrow(void* in, void* inout, int* count, MPI_Datatype* type) {
  combine_all<add>(in, inout, *count, *type);
}

struct Turn {
  unsigned number;
  int root;
  bool in_place;
  Form form;
  bool commutes;
  bool is_wide;
  const Type* type;
  std::vector<int> counts;  // by rank

  static Turn draw(unsigned number) {
    Turn turn{number, below(test::ranks()), below(3) == 0, Form::blocking, below(2) == 0, below(2) == 0, nullptr, {}};
    turn.form = static_cast<Form>(below(3));
    turn.type = &types[static_cast<std::size_t>(below(static_cast<int>(types.size())))];
    const int most = below(8) == 0 ? 5000 / test::ranks() : 20;
    for (int i = 0; i < test::ranks(); ++i) turn.counts.push_back(below(most));
    return turn;
  }
  [[nodiscard]] Affine operand(int rank, std::size_t element) const {
    const auto ints = test::message(number + 77 * static_cast<unsigned>(element), rank, 0, 2);
    return {static_cast<std::uint32_t>(ints[0]), static_cast<std::uint32_t>(ints[1])};
  }
  // The combination of ranks first to last.
  [[nodiscard]] Affine combination(int first, int last, std::size_t element) const {
    Affine all = operand(first, element);
    for (int rank = first + 1; rank <= last; ++rank) {
      all = commutes ? add(all, operand(rank, element)) : compose(all, operand(rank, element));
    }
    return all;
  }
  [[nodiscard]] MPI_Op make_op() const {
    MPI_Op op = MPI_OP_NULL;
    if (commutes) {
      MPI_Op_create(add_narrow, 1, &op);
    } else if (is_wide) {
      MPI_Op_create_c(compose_wide, 0, &op);
    } else {
      MPI_Op_create(compose_narrow, 0, &op);
    }
    return op;
  }
};

void check(const Values& values, const char* what, const Turn& turn) {
  if (values.is_as_expected()) return;
  test::fail(__FILE__, __LINE__,
             std::string(what) + ", turn " + std::to_string(turn.number) + ", type " +
                 std::to_string(turn.type - types.data()) + ", form " + std::to_string(static_cast<int>(turn.form)) +
                 (turn.in_place ? ", in place" : "") + (turn.commutes ? ", commutes" : "") + ", root " +
                 std::to_string(turn.root) + ", count " + std::to_string(turn.counts[0]));
}

// One collective with `count` operands and `results` results, of which `expected(element)` is the value.
template <class Call, class Expected>
void perform(const Turn& turn, const char* what, std::size_t count, std::size_t results, bool in_place, bool has_result,
             Expected&& expected, Call&& call) {
  const int me = test::rank();
  Values own(*turn.type, count);
  Values result(*turn.type, has_result ? std::max(count, results) : 0);
  for (std::size_t i = 0; i < count; ++i) {
    (in_place ? result : own).set(i, turn.operand(me, i));
  }
  const Values old = result;
  for (std::size_t i = 0; has_result && i < results; ++i) result.expect(i, expected(i));
  MPI_Op op = turn.make_op();
  call(in_place ? MPI_IN_PLACE : own.address(), has_result ? result.address() : nullptr, op,
       [&] { result.restore(old); });
  CHECK(op == MPI_OP_NULL);
  for (std::size_t i = results; in_place && i < count; ++i) result.ignore(i);
  check(result, what, turn);
  check(own, what, turn);
}

// The operation is freed while a started collective uses it.
#define REDUCE(again, Name, Iname, ...)                                                       \
  do {                                                                                        \
    MPI_Request request_ = MPI_REQUEST_NULL;                                                  \
    switch (turn.form) {                                                                      \
      case Form::blocking: MPI_##Name(__VA_ARGS__); break;                                    \
      case Form::started: MPI_##Iname(__VA_ARGS__, &request_); break;                         \
      case Form::persistent: MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_); break; \
    }                                                                                         \
    MPI_Op_free(&op);                                                                         \
    if (turn.form == Form::started) MPI_Wait(&request_, MPI_STATUS_IGNORE);                   \
    for (int start_ = 0; turn.form == Form::persistent && start_ < 3; ++start_) {             \
      if (start_ != 0) again();                                                               \
      MPI_Start(&request_);                                                                   \
      MPI_Wait(&request_, MPI_STATUS_IGNORE);                                                 \
    }                                                                                         \
    if (turn.form == Form::persistent) MPI_Request_free(&request_);                           \
  } while (false)

void reduce(const Turn& turn) {
  const int last = test::ranks() - 1;
  const bool is_root = test::rank() == turn.root;
  const auto count = static_cast<std::size_t>(turn.counts[0]);
  perform(
      turn, "reduce", count, count, turn.in_place && is_root, is_root,
      [&](std::size_t i) { return turn.combination(0, last, i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Reduce, Ireduce, own, result, turn.counts[0], turn.type->handle, op, turn.root, MPI_COMM_WORLD);
      });
}

void allreduce(const Turn& turn) {
  const int last = test::ranks() - 1;
  const auto count = static_cast<std::size_t>(turn.counts[0]);
  perform(
      turn, "allreduce", count, count, turn.in_place, true, [&](std::size_t i) { return turn.combination(0, last, i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Allreduce, Iallreduce, own, result, turn.counts[0], turn.type->handle, op, MPI_COMM_WORLD);
      });
}

void scan(const Turn& turn) {
  const auto count = static_cast<std::size_t>(turn.counts[0]);
  perform(
      turn, "scan", count, count, turn.in_place, true,
      [&](std::size_t i) { return turn.combination(0, test::rank(), i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Scan, Iscan, own, result, turn.counts[0], turn.type->handle, op, MPI_COMM_WORLD);
      });
}

void exscan(const Turn& turn) {
  const auto count = static_cast<std::size_t>(turn.counts[0]);
  perform(
      turn, "exscan", count, test::rank() == 0 ? 0 : count, turn.in_place, true,
      [&](std::size_t i) { return turn.combination(0, test::rank() - 1, i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Exscan, Iexscan, own, result, turn.counts[0], turn.type->handle, op, MPI_COMM_WORLD);
      });
}

void reduce_scatter(const Turn& turn) {
  const int last = test::ranks() - 1;
  std::size_t all = 0;
  std::size_t before = 0;
  for (int rank = 0; rank <= last; ++rank) {
    if (rank == test::rank()) before = all;
    all += static_cast<std::size_t>(turn.counts[static_cast<std::size_t>(rank)]);
  }
  const auto mine = static_cast<std::size_t>(turn.counts[static_cast<std::size_t>(test::rank())]);
  perform(
      turn, "reduce_scatter", all, mine, turn.in_place, true,
      [&](std::size_t i) { return turn.combination(0, last, before + i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Reduce_scatter, Ireduce_scatter, own, result, turn.counts.data(), turn.type->handle, op,
               MPI_COMM_WORLD);
      });
}

void reduce_scatter_block(const Turn& turn) {
  const int last = test::ranks() - 1;
  const auto mine = static_cast<std::size_t>(turn.counts[0]);
  const auto before = mine * static_cast<std::size_t>(test::rank());
  perform(
      turn, "reduce_scatter_block", mine * static_cast<std::size_t>(last + 1), mine, turn.in_place, true,
      [&](std::size_t i) { return turn.combination(0, last, before + i); },
      [&](void* own, void* result, MPI_Op& op, auto&& again) {
        REDUCE(again, Reduce_scatter_block, Ireduce_scatter_block, own, result, turn.counts[0], turn.type->handle, op,
               MPI_COMM_WORLD);
      });
}

// Sums of doubles of every length, against their exact sum: the values are small integers.
void sum_doubles() {
  for (const int count : {1, 7, 600, 5000, 9001, 40000}) {
    std::vector<double> own(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<double>(i % 100) + test::rank();
    std::vector<double> all(own.size(), -1);
    MPI_Allreduce(own.data(), all.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    const int ranks = test::ranks();
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK_EQUAL(all[i], static_cast<double>(i % 100) * ranks + ranks * (ranks - 1) / 2);
      CHECK_EQUAL(own[i], static_cast<double>(i % 100) + test::rank());
    }
    MPI_Allreduce(MPI_IN_PLACE, own.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK(own == all);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test::seed_choices();
  make_types();
  sum_doubles();
  for (unsigned turn = 0; turn < 60; ++turn) {
    for (auto* const collective : {reduce, allreduce, scan, exscan, reduce_scatter, reduce_scatter_block}) {
      collective(Turn::draw(turn));
    }
  }
  for (Type& type : types) {
    if (type.handle != MPI_UINT64_T) MPI_Type_free(&type.handle);
  }
  MPI_Finalize();
}
