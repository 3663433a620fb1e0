// ranks: 2 3 5 8
#include "shapes.hpp"

// Collectives on inter-communicators, in all three forms: data of each side go to the other side.
namespace {

using test::any_separate_shape;
using test::any_shape;
using test::below;
using test::Form;
using test::Layout;
using test::Memory;
using test::private_random;
using test::Shape;
using test::shapes;
using test::shared_random;

// The two sides: world ranks below `left`, and the others.
struct Sides {
  MPI_Comm comm = MPI_COMM_NULL;
  int left;
  bool is_left;
  int mine;    // ranks of this side
  int others;  // of the other side
  int first;   // world rank of the other side's rank 0
  int own_first;

  explicit Sides(int left_ranks) : left(left_ranks), is_left(test::rank() < left_ranks) {
    mine = is_left ? left : test::ranks() - left;
    others = test::ranks() - mine;
    first = is_left ? left : 0;
    own_first = is_left ? 0 : left;
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, is_left ? 1 : 0, 0, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, first, 9, &comm);
    MPI_Comm_free(&local);
  }
  // How this rank names the root, which is a world rank.
  [[nodiscard]] int root(int world_root) const {
    if ((world_root < left) != is_left) return world_root - first;
    return world_root == test::rank() ? int{MPI_ROOT} : int{MPI_PROC_NULL};
  }
};

struct Turn {
  unsigned number;
  int root;  // in the world
  Form form;
  int ints;

  static Turn draw(unsigned number) {
    const int most = shared_random() % 8 == 0 ? 6000 : 40;
    return {number, below(shared_random, test::ranks()), static_cast<Form>(below(shared_random, 3)),
            4 * below(shared_random, most)};
  }
  [[nodiscard]] int size(int rank) const {
    return 4 * ((rank * 7 + static_cast<int>(number)) % 13) + (rank % 2 == 0 ? ints : 0);
  }
  [[nodiscard]] std::vector<int> data(int from, int to, int count) const {
    return test::message(number, from, to, count);
  }
};

void nothing() {}

void check(const Memory& memory, const char* what, const Turn& turn) {
  if (!memory.is_as_expected())
    test::fail(__FILE__, __LINE__, std::string(what) + ", turn " + std::to_string(turn.number));
}

void barrier(const Sides& sides, const Turn& turn) { COLLECTIVE(turn.form, nothing, Barrier, Ibarrier, sides.comm); }

void bcast(const Sides& sides, const Turn& turn) {
  const Shape& shape = any_shape();
  const int root = sides.root(turn.root);
  const bool takes_part = root != MPI_PROC_NULL;
  const int count = turn.ints / shape.size();
  Memory memory(shape, 0, count);
  if (root == MPI_ROOT) memory.set(0, turn.data(turn.root, 0, turn.ints));
  if (root >= 0) memory.expect(0, turn.data(turn.root, 0, turn.ints));
  COLLECTIVE(turn.form, nothing, Bcast, Ibcast, memory.address(), takes_part ? count : -1,
             takes_part ? shape.type : MPI_DATATYPE_NULL, root, sides.comm);
  check(memory, "bcast", turn);
}

// Gather and scatter, with counts and without.
void gather(const Sides& sides, const Turn& turn) {
  const int root = sides.root(turn.root);
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_separate_shape();
  const int count = turn.ints / shape.size();
  Memory sent(sent_shape, 0, turn.ints / sent_shape.size());
  sent.set(0, turn.data(test::rank(), 0, turn.ints));
  Memory all(shape, 0, root == MPI_ROOT ? count * sides.others : 0);
  for (int rank = 0; root == MPI_ROOT && rank < sides.others; ++rank) {
    all.expect(rank * count, turn.data(sides.first + rank, 0, turn.ints));
  }
  COLLECTIVE(turn.form, nothing, Gather, Igather, sent.address(), turn.ints / sent_shape.size(), sent_shape.type,
             all.address(), count, shape.type, root, sides.comm);
  check(all, "gather", turn);
}

void gatherv(const Sides& sides, const Turn& turn) {
  const int root = sides.root(turn.root);
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  const int mine = turn.size(test::rank());
  Memory sent(sent_shape, 0, mine / sent_shape.size());
  sent.set(0, turn.data(test::rank(), 0, mine));
  std::vector<int> sizes;
  for (int rank = 0; rank < sides.others; ++rank) sizes.push_back(turn.size(sides.first + rank));
  const Layout layout(sizes, shape, private_random);
  Memory all(shape, 0, root == MPI_ROOT ? layout.end : 0);
  for (int rank = 0; root == MPI_ROOT && rank < sides.others; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    all.expect(layout.displacements[i], turn.data(sides.first + rank, 0, sizes[i]));
  }
  COLLECTIVE(turn.form, nothing, Gatherv, Igatherv, sent.address(), mine / sent_shape.size(), sent_shape.type,
             all.address(), layout.counts.data(), layout.displacements.data(), shape.type, root, sides.comm);
  check(all, "gatherv", turn);
}

void scatter(const Sides& sides, const Turn& turn) {
  const int root = sides.root(turn.root);
  const Shape& shape = any_separate_shape();
  const Shape& mine_shape = any_shape();
  const int count = turn.ints / shape.size();
  Memory all(shape, 0, count * sides.others);
  for (int rank = 0; rank < sides.others; ++rank)
    all.set(rank * count, turn.data(turn.root, sides.first + rank, turn.ints));
  Memory mine(mine_shape, 0, turn.ints / mine_shape.size());
  if (root >= 0) mine.expect(0, turn.data(turn.root, test::rank(), turn.ints));
  COLLECTIVE(turn.form, nothing, Scatter, Iscatter, all.address(), count, shape.type, mine.address(),
             turn.ints / mine_shape.size(), mine_shape.type, root, sides.comm);
  check(mine, "scatter", turn);
}

void scatterv(const Sides& sides, const Turn& turn) {
  const int root = sides.root(turn.root);
  const Shape& shape = any_shape();
  const Shape& mine_shape = any_shape();
  std::vector<int> sizes;
  for (int rank = 0; rank < sides.others; ++rank) sizes.push_back(turn.size(sides.first + rank));
  const Layout layout(sizes, shape, private_random);
  Memory all(shape, 0, layout.end);
  for (int rank = 0; rank < sides.others; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    all.set(layout.displacements[i], turn.data(turn.root, sides.first + rank, sizes[i]));
  }
  const int size = turn.size(test::rank());
  Memory mine(mine_shape, 0, size / mine_shape.size());
  if (root >= 0) mine.expect(0, turn.data(turn.root, test::rank(), size));
  COLLECTIVE(turn.form, nothing, Scatterv, Iscatterv, all.address(), layout.counts.data(), layout.displacements.data(),
             shape.type, mine.address(), size / mine_shape.size(), mine_shape.type, root, sides.comm);
  check(mine, "scatterv", turn);
}

void allgather(const Sides& sides, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_separate_shape();
  const int count = turn.ints / shape.size();
  Memory sent(sent_shape, 0, turn.ints / sent_shape.size());
  sent.set(0, turn.data(test::rank(), 0, turn.ints));
  Memory all(shape, 0, count * sides.others);
  for (int rank = 0; rank < sides.others; ++rank) all.expect(rank * count, turn.data(sides.first + rank, 0, turn.ints));
  COLLECTIVE(turn.form, nothing, Allgather, Iallgather, sent.address(), turn.ints / sent_shape.size(), sent_shape.type,
             all.address(), count, shape.type, sides.comm);
  check(all, "allgather", turn);
}

void allgatherv(const Sides& sides, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  const int mine = turn.size(test::rank());
  Memory sent(sent_shape, 0, mine / sent_shape.size());
  sent.set(0, turn.data(test::rank(), 0, mine));
  std::vector<int> sizes;
  for (int rank = 0; rank < sides.others; ++rank) sizes.push_back(turn.size(sides.first + rank));
  const Layout layout(sizes, shape, private_random);
  Memory all(shape, 0, layout.end);
  for (int rank = 0; rank < sides.others; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    all.expect(layout.displacements[i], turn.data(sides.first + rank, 0, sizes[i]));
  }
  COLLECTIVE(turn.form, nothing, Allgatherv, Iallgatherv, sent.address(), mine / sent_shape.size(), sent_shape.type,
             all.address(), layout.counts.data(), layout.displacements.data(), shape.type, sides.comm);
  check(all, "allgatherv", turn);
}

void alltoall(const Sides& sides, const Turn& turn) {
  const Shape& sent_shape = any_separate_shape();
  const Shape& shape = any_separate_shape();
  const int sent_count = turn.ints / sent_shape.size();
  const int count = turn.ints / shape.size();
  Memory sent(sent_shape, 0, sent_count * sides.others);
  Memory all(shape, 0, count * sides.others);
  for (int rank = 0; rank < sides.others; ++rank) {
    sent.set(rank * sent_count, turn.data(test::rank(), sides.first + rank, turn.ints));
    all.expect(rank * count, turn.data(sides.first + rank, test::rank(), turn.ints));
  }
  COLLECTIVE(turn.form, nothing, Alltoall, Ialltoall, sent.address(), sent_count, sent_shape.type, all.address(), count,
             shape.type, sides.comm);
  check(all, "alltoall", turn);
}

void alltoallv(const Sides& sides, const Turn& turn) {
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  std::vector<int> sent_sizes;
  std::vector<int> sizes;
  for (int rank = 0; rank < sides.others; ++rank) {
    sent_sizes.push_back(turn.size(test::rank() + 2 * (sides.first + rank)));
    sizes.push_back(turn.size(sides.first + rank + 2 * test::rank()));
  }
  const Layout sent_layout(sent_sizes, sent_shape, private_random);
  const Layout layout(sizes, shape, private_random);
  Memory sent(sent_shape, 0, sent_layout.end);
  Memory all(shape, 0, layout.end);
  for (int rank = 0; rank < sides.others; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    sent.set(sent_layout.displacements[i], turn.data(test::rank(), sides.first + rank, sent_sizes[i]));
    all.expect(layout.displacements[i], turn.data(sides.first + rank, test::rank(), sizes[i]));
  }
  COLLECTIVE(turn.form, nothing, Alltoallv, Ialltoallv, sent.address(), sent_layout.counts.data(),
             sent_layout.displacements.data(), sent_shape.type, all.address(), layout.counts.data(),
             layout.displacements.data(), shape.type, sides.comm);
  check(all, "alltoallv", turn);
}

// Reductions of ints, which may have gaps between them. An int is two numbers of 16 bits, the affine map x -> a x + b.
// Combining is composing, which depends on the order of ranks.
unsigned compose(unsigned left, unsigned right) {
  const unsigned a = (left >> 16U) * (right >> 16U);
  const unsigned b = (left >> 16U) * (right & 0xffffU) + (left & 0xffffU);
  return a << 16U | (b & 0xffffU);
}

extern "C" void compose_all(void* in, void* inout, int* count, MPI_Datatype* type) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  MPI_Type_get_extent(*type, &lower, &extent);
  for (int i = 0; i < *count; ++i) {
    unsigned left = 0;
    unsigned right = 0;
    std::memcpy(&left, static_cast<char*>(in) + i * extent, 4);
    std::memcpy(&right, static_cast<char*>(inout) + i * extent, 4);
    right = compose(left, right);
    std::memcpy(static_cast<char*>(inout) + i * extent, &right, 4);
  }
}

// The combination of the other side's values.
std::vector<int> combined(const Sides& sides, const Turn& turn, int count) {
  std::vector<int> all = turn.data(sides.first, 0, count);
  for (int rank = 1; rank < sides.others; ++rank) {
    const auto next = turn.data(sides.first + rank, 0, count);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = static_cast<int>(compose(static_cast<unsigned>(all[i]), static_cast<unsigned>(next[i])));
    }
  }
  return all;
}

void reductions(const Sides& sides, const Turn& turn, const Shape& shape) {
  MPI_Op op = MPI_OP_NULL;
  MPI_Op_create(compose_all, 0, &op);
  const int per_rank = 1 + turn.ints / 50;
  const int count = per_rank * sides.mine * sides.others;
  Memory own(shape, 0, count);
  own.set(0, turn.data(test::rank(), 0, count));
  const auto theirs = combined(sides, turn, count);

  Memory all(shape, 0, count);
  all.expect(0, theirs);
  COLLECTIVE(turn.form, nothing, Allreduce, Iallreduce, own.address(), all.address(), count, shape.type, op,
             sides.comm);
  check(all, "allreduce", turn);

  const int root = sides.root(turn.root);
  Memory at_root(shape, 0, count);
  if (root == MPI_ROOT) at_root.expect(0, theirs);
  COLLECTIVE(turn.form, nothing, Reduce, Ireduce, own.address(), at_root.address(), root == MPI_PROC_NULL ? -1 : count,
             root == MPI_PROC_NULL ? MPI_DATATYPE_NULL : shape.type, op, root, sides.comm);
  check(at_root, "reduce", turn);

  // Blocks, and then the same with one element moved from the last rank to the first.
  const int me = test::rank() - sides.own_first;
  const int block = count / sides.mine;
  Memory part(shape, 0, block);
  part.expect(0, {theirs.begin() + me * block, theirs.begin() + (me + 1) * block});
  COLLECTIVE(turn.form, nothing, Reduce_scatter_block, Ireduce_scatter_block, own.address(), part.address(), block,
             shape.type, op, sides.comm);
  check(part, "reduce_scatter_block", turn);

  std::vector<int> counts(static_cast<std::size_t>(sides.mine), block);
  ++counts.front();
  --counts.back();
  const int mine = counts[static_cast<std::size_t>(me)];
  const int before = me * block + (me == 0 ? 0 : 1);
  Memory stretch(shape, 0, mine);
  stretch.expect(0, {theirs.begin() + before, theirs.begin() + before + mine});
  COLLECTIVE(turn.form, nothing, Reduce_scatter, Ireduce_scatter, own.address(), stretch.address(), counts.data(),
             shape.type, op, sides.comm);
  check(stretch, "reduce_scatter", turn);
  MPI_Op_free(&op);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test::seed_choices();
  test::make_shapes();
  Shape spaced{MPI_DATATYPE_NULL, {0}, 12, 0, 12};
  MPI_Type_create_resized(MPI_INT, 0, 12, &spaced.type);
  MPI_Type_commit(&spaced.type);
  for (int round = 0; round < 5; ++round) {
    Sides sides(1 + below(shared_random, test::ranks() - 1));
    for (unsigned turn = 0; turn < 8; ++turn) {
      for (auto* const collective :
           {barrier, bcast, gather, gatherv, scatter, scatterv, allgather, allgatherv, alltoall, alltoallv}) {
        collective(sides, Turn::draw(turn));
      }
      reductions(sides, Turn::draw(turn), turn % 2 == 0 ? spaced : shapes[0]);
    }
    MPI_Comm_free(&sides.comm);
  }
  MPI_Type_free(&spaced.type);
  test::free_shapes();
  MPI_Finalize();
}
