// ranks: 1 2 3 5 9
#include "shapes.hpp"

// The collectives that move data: random counts, displacements and types, in place or not, in all three forms. Each
// rank computes the expected data by itself.
namespace {

using test::any_shape;
using test::below;
using test::Form;
using test::Layout;
using test::Memory;
using test::private_random;
using test::Shape;
using test::shapes;
using test::shared_random;

// A collective's turn, which all ranks draw in the same way.
struct Turn {
  unsigned number;
  int root;
  bool in_place;
  Form form;
  std::vector<int> ints;  // by rank: all sizes that it needs, multiples of 4

  static Turn draw(unsigned number) {
    Turn turn{number, below(shared_random, test::ranks()), shared_random() % 3 == 0, Form::blocking, {}};
    turn.form = static_cast<Form>(below(shared_random, 3));
    const int most = shared_random() % 8 == 0 ? 30000 : 60;
    for (int i = 0; i < test::ranks() * test::ranks(); ++i) turn.ints.push_back(4 * below(shared_random, most / 4));
    return turn;
  }
  [[nodiscard]] int of(int from, int to) const { return ints[static_cast<std::size_t>(from * test::ranks() + to)]; }
  [[nodiscard]] std::vector<int> data(int from, int to, int count) const {
    return test::message(number, from, to, count);
  }
};

void nothing() {}

void check(const Memory& memory, const char* what, const Turn& turn) {
  if (!memory.is_as_expected()) {
    test::fail(__FILE__, __LINE__,
               std::string(what) + ", turn " + std::to_string(turn.number) + ", form " +
                   std::to_string(static_cast<int>(turn.form)) + (turn.in_place ? ", in place" : ""));
  }
}

void bcast(const Turn& turn) {
  const Shape& shape = any_shape();
  const int ints = turn.ints[0];
  const int count = ints / shape.size();
  Memory memory(shape, 0, count);
  const auto values = turn.data(turn.root, 0, ints);
  test::rank() == turn.root ? memory.set(0, values) : memory.expect(0, values);
  COLLECTIVE(turn.form, nothing, Bcast, Ibcast, memory.address(), count, shape.type, turn.root, MPI_COMM_WORLD);
  check(memory, "bcast", turn);
}

void gather(const Turn& turn) {
  const int me = test::rank();
  const bool is_root = me == turn.root;
  const bool in_place = is_root && turn.in_place;
  const int ints = turn.ints[0];
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  // Columns lie inside of each other, so that all of them must fit into one.
  const bool has_room = shape.extent >= shape.end - shape.begin;
  const Shape& all_shape = has_room ? shape : shapes[0];
  const int count = ints / all_shape.size();
  Memory sent(sent_shape, 0, ints / sent_shape.size());
  sent.set(0, turn.data(me, 0, ints));
  Memory all(all_shape, 0, is_root ? count * test::ranks() : 0);
  for (int rank = 0; is_root && rank < test::ranks(); ++rank) {
    const auto values = turn.data(rank, 0, ints);
    in_place&& rank == me ? all.set(rank * count, values) : all.expect(rank * count, values);
  }
  COLLECTIVE(turn.form, nothing, Gather, Igather, in_place ? MPI_IN_PLACE : sent.address(),
             in_place ? -1 : ints / sent_shape.size(), in_place ? MPI_DATATYPE_NULL : sent_shape.type,
             is_root ? all.address() : nullptr, is_root ? count : -1, is_root ? all_shape.type : MPI_DATATYPE_NULL,
             turn.root, MPI_COMM_WORLD);
  check(all, "gather", turn);
  check(sent, "gather: sent data", turn);
}

void gatherv(const Turn& turn) {
  const int me = test::rank();
  const bool is_root = me == turn.root;
  const bool in_place = is_root && turn.in_place;
  const int ints = turn.of(me, 0);
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  std::vector<int> sizes;
  for (int rank = 0; rank < test::ranks(); ++rank) sizes.push_back(turn.of(rank, 0));
  const Layout layout(sizes, shape, private_random);
  Memory sent(sent_shape, 0, ints / sent_shape.size());
  sent.set(0, turn.data(me, 0, ints));
  Memory all(shape, 0, is_root ? layout.end : 0);
  for (int rank = 0; is_root && rank < test::ranks(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const auto values = turn.data(rank, 0, sizes[i]);
    in_place&& rank == me ? all.set(layout.displacements[i], values) : all.expect(layout.displacements[i], values);
  }
  COLLECTIVE(turn.form, nothing, Gatherv, Igatherv, in_place ? MPI_IN_PLACE : sent.address(),
             in_place ? -1 : ints / sent_shape.size(), in_place ? MPI_DATATYPE_NULL : sent_shape.type,
             is_root ? all.address() : nullptr, is_root ? layout.counts.data() : nullptr,
             is_root ? layout.displacements.data() : nullptr, is_root ? shape.type : MPI_DATATYPE_NULL, turn.root,
             MPI_COMM_WORLD);
  check(all, "gatherv", turn);
}

void scatter(const Turn& turn) {
  const int me = test::rank();
  const bool is_root = me == turn.root;
  const bool in_place = is_root && turn.in_place;
  const int ints = turn.ints[0];
  const Shape& shape = any_shape();
  const bool has_room = shape.extent >= shape.end - shape.begin;
  const Shape& all_shape = has_room ? shape : shapes[0];
  const Shape& mine_shape = any_shape();
  const int count = ints / all_shape.size();
  Memory all(all_shape, 0, is_root ? count * test::ranks() : 0);
  for (int rank = 0; is_root && rank < test::ranks(); ++rank) all.set(rank * count, turn.data(rank, 0, ints));
  Memory mine(mine_shape, 0, ints / mine_shape.size());
  if (!in_place) mine.expect(0, turn.data(me, 0, ints));
  COLLECTIVE(turn.form, nothing, Scatter, Iscatter, is_root ? all.address() : nullptr, is_root ? count : -1,
             is_root ? all_shape.type : MPI_DATATYPE_NULL, in_place ? MPI_IN_PLACE : mine.address(),
             in_place ? -1 : ints / mine_shape.size(), in_place ? MPI_DATATYPE_NULL : mine_shape.type, turn.root,
             MPI_COMM_WORLD);
  check(mine, "scatter", turn);
  check(all, "scatter: sent data", turn);
}

void scatterv(const Turn& turn) {
  const int me = test::rank();
  const bool is_root = me == turn.root;
  const bool in_place = is_root && turn.in_place;
  const int ints = turn.of(me, 0);
  const Shape& shape = any_shape();
  const Shape& mine_shape = any_shape();
  std::vector<int> sizes;
  for (int rank = 0; rank < test::ranks(); ++rank) sizes.push_back(turn.of(rank, 0));
  const Layout layout(sizes, shape, private_random);
  Memory all(shape, 0, is_root ? layout.end : 0);
  for (int rank = 0; is_root && rank < test::ranks(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    all.set(layout.displacements[i], turn.data(rank, 0, sizes[i]));
  }
  Memory mine(mine_shape, 0, ints / mine_shape.size());
  if (!in_place) mine.expect(0, turn.data(me, 0, ints));
  COLLECTIVE(turn.form, nothing, Scatterv, Iscatterv, is_root ? all.address() : nullptr,
             is_root ? layout.counts.data() : nullptr, is_root ? layout.displacements.data() : nullptr,
             is_root ? shape.type : MPI_DATATYPE_NULL, in_place ? MPI_IN_PLACE : mine.address(),
             in_place ? -1 : ints / mine_shape.size(), in_place ? MPI_DATATYPE_NULL : mine_shape.type, turn.root,
             MPI_COMM_WORLD);
  check(mine, "scatterv", turn);
}

void allgather(const Turn& turn) {
  const int me = test::rank();
  const int ints = turn.ints[0];
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  const bool has_room = shape.extent >= shape.end - shape.begin;
  const Shape& all_shape = has_room ? shape : shapes[0];
  const int count = ints / all_shape.size();
  Memory sent(sent_shape, 0, ints / sent_shape.size());
  sent.set(0, turn.data(me, 0, ints));
  Memory all(all_shape, 0, count * test::ranks());
  for (int rank = 0; rank < test::ranks(); ++rank) {
    const auto values = turn.data(rank, 0, ints);
    turn.in_place&& rank == me ? all.set(rank * count, values) : all.expect(rank * count, values);
  }
  COLLECTIVE(turn.form, nothing, Allgather, Iallgather, turn.in_place ? MPI_IN_PLACE : sent.address(),
             turn.in_place ? -1 : ints / sent_shape.size(), turn.in_place ? MPI_DATATYPE_NULL : sent_shape.type,
             all.address(), count, all_shape.type, MPI_COMM_WORLD);
  check(all, "allgather", turn);
}

void allgatherv(const Turn& turn) {
  const int me = test::rank();
  const int ints = turn.of(me, 0);
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  std::vector<int> sizes;
  for (int rank = 0; rank < test::ranks(); ++rank) sizes.push_back(turn.of(rank, 0));
  const Layout layout(sizes, shape, private_random);
  Memory sent(sent_shape, 0, ints / sent_shape.size());
  sent.set(0, turn.data(me, 0, ints));
  Memory all(shape, 0, layout.end);
  for (int rank = 0; rank < test::ranks(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    const auto values = turn.data(rank, 0, sizes[i]);
    turn.in_place&& rank == me ? all.set(layout.displacements[i], values) : all.expect(layout.displacements[i], values);
  }
  COLLECTIVE(turn.form, nothing, Allgatherv, Iallgatherv, turn.in_place ? MPI_IN_PLACE : sent.address(),
             turn.in_place ? -1 : ints / sent_shape.size(), turn.in_place ? MPI_DATATYPE_NULL : sent_shape.type,
             all.address(), layout.counts.data(), layout.displacements.data(), shape.type, MPI_COMM_WORLD);
  check(all, "allgatherv", turn);
}

void alltoall(const Turn& turn) {
  const int me = test::rank();
  const int ints = turn.ints[0];
  const Shape& first = any_shape();
  const Shape& second = any_shape();
  const Shape& sent_shape = first.extent >= first.end - first.begin ? first : shapes[0];
  const Shape& all_shape = second.extent >= second.end - second.begin ? second : shapes[0];
  const int sent_count = ints / sent_shape.size();
  const int count = ints / all_shape.size();
  Memory sent(sent_shape, 0, sent_count * test::ranks());
  Memory all(all_shape, 0, count * test::ranks());
  for (int rank = 0; rank < test::ranks(); ++rank) {
    sent.set(rank * sent_count, turn.data(me, rank, ints));
    if (turn.in_place) all.set(rank * count, turn.data(me, rank, ints));
    all.expect(rank * count, turn.data(rank, me, ints));
  }
  const Memory old = all;
  COLLECTIVE(
      turn.form, [&] { all.restore(old); }, Alltoall, Ialltoall, turn.in_place ? MPI_IN_PLACE : sent.address(),
      turn.in_place ? -1 : sent_count, turn.in_place ? MPI_DATATYPE_NULL : sent_shape.type, all.address(), count,
      all_shape.type, MPI_COMM_WORLD);
  check(all, "alltoall", turn);
}

// Draws the sizes of the messages to each rank, and from each rank. In place both directions have the same size.
void draw_sizes(const Turn& turn, std::vector<int>& sent, std::vector<int>& received) {
  const int me = test::rank();
  for (int rank = 0; rank < test::ranks(); ++rank) {
    sent.push_back(turn.in_place ? turn.of(std::min(me, rank), std::max(me, rank)) : turn.of(me, rank));
    received.push_back(turn.in_place ? sent.back() : turn.of(rank, me));
  }
}

void alltoallv(const Turn& turn) {
  const int me = test::rank();
  const Shape& sent_shape = any_shape();
  const Shape& shape = any_shape();
  std::vector<int> sent_sizes;
  std::vector<int> sizes;
  draw_sizes(turn, sent_sizes, sizes);
  const Layout sent_layout(sent_sizes, sent_shape, private_random);
  const Layout layout(sizes, shape, private_random);
  Memory sent(sent_shape, 0, sent_layout.end);
  Memory all(shape, 0, layout.end);
  for (int rank = 0; rank < test::ranks(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    sent.set(sent_layout.displacements[i], turn.data(me, rank, sent_sizes[i]));
    if (turn.in_place) all.set(layout.displacements[i], turn.data(me, rank, sizes[i]));
    all.expect(layout.displacements[i], turn.data(rank, me, sizes[i]));
  }
  const Memory old = all;
  COLLECTIVE(
      turn.form, [&] { all.restore(old); }, Alltoallv, Ialltoallv, turn.in_place ? MPI_IN_PLACE : sent.address(),
      turn.in_place ? nullptr : sent_layout.counts.data(), turn.in_place ? nullptr : sent_layout.displacements.data(),
      turn.in_place ? MPI_DATATYPE_NULL : sent_shape.type, all.address(), layout.counts.data(),
      layout.displacements.data(), shape.type, MPI_COMM_WORLD);
  check(all, "alltoallv", turn);
}

// Each rank's data have a type and a buffer of their own; the displacements are addresses.
void alltoallw(const Turn& turn) {
  const int me = test::rank();
  const auto ranks = static_cast<std::size_t>(test::ranks());
  std::vector<int> sent_sizes;
  std::vector<int> sizes;
  draw_sizes(turn, sent_sizes, sizes);
  std::vector<Memory> sent;
  std::vector<Memory> all;
  std::vector<MPI_Datatype> sent_types;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Count> sent_counts;
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> sent_places;
  std::vector<MPI_Aint> places;
  std::vector<Memory> old;
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto rank = static_cast<int>(i);
    const Shape& sent_shape = any_shape();
    const Shape& shape = any_shape();
    sent.emplace_back(sent_shape, 0, sent_sizes[i] / sent_shape.size()).set(0, turn.data(me, rank, sent_sizes[i]));
    Memory& memory = all.emplace_back(shape, 0, sizes[i] / shape.size());
    if (turn.in_place) memory.set(0, turn.data(me, rank, sizes[i]));
    memory.expect(0, turn.data(rank, me, sizes[i]));
    old.push_back(memory);
    sent_types.push_back(sent_shape.type);
    types.push_back(shape.type);
    sent_counts.push_back(sent_sizes[i] / sent_shape.size());
    counts.push_back(sizes[i] / shape.size());
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    sent_places.push_back(reinterpret_cast<MPI_Aint>(sent[i].address()));
    places.push_back(reinterpret_cast<MPI_Aint>(all[i].address()));
  }
  const auto again = [&] {
    for (std::size_t i = 0; i < ranks; ++i) all[i].restore(old[i]);
  };
  MPI_Request request = MPI_REQUEST_NULL;
  const void* const sendbuf = turn.in_place ? MPI_IN_PLACE : MPI_BOTTOM;
  switch (turn.form) {
    case Form::blocking:
      MPI_Alltoallw_c(sendbuf, sent_counts.data(), sent_places.data(), sent_types.data(), MPI_BOTTOM, counts.data(),
                      places.data(), types.data(), MPI_COMM_WORLD);
      break;
    case Form::started:
      MPI_Ialltoallw_c(sendbuf, sent_counts.data(), sent_places.data(), sent_types.data(), MPI_BOTTOM, counts.data(),
                       places.data(), types.data(), MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case Form::persistent:
      MPI_Alltoallw_init_c(sendbuf, sent_counts.data(), sent_places.data(), sent_types.data(), MPI_BOTTOM,
                           counts.data(), places.data(), types.data(), MPI_COMM_WORLD, MPI_INFO_NULL, &request);
      for (int start = 0; start < 3; ++start) {
        if (start != 0) again();
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      MPI_Request_free(&request);
  }
  for (const Memory& memory : all) check(memory, "alltoallw", turn);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test::seed_choices();
  test::make_shapes();
  for (unsigned turn = 0; turn < 40; ++turn) {
    for (auto* const collective :
         {bcast, gather, gatherv, scatter, scatterv, allgather, allgatherv, alltoall, alltoallv, alltoallw}) {
      collective(Turn::draw(turn));
    }
    if (turn % 8 == 0) MPI_Barrier(MPI_COMM_WORLD);
  }
  test::free_shapes();
  MPI_Finalize();
}
