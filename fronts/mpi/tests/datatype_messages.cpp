// ranks: 1 2 3
#include "check.hpp"
#include "mpi/tests/datatype_buffer.hpp"

// Messages of random datatypes along a ring: received as the same type, or as another one with the same signature.
namespace {

using test::Buffer;
using test::Bytes;
using test::Maker;
using test::Pair;

// All ranks draw the same types and values, so each knows what its neighbour sends.
void exchange(Maker& maker, const Pair& sent, int count, const Pair& received, int received_count) {
  const int right = (test::rank() + 1) % test::ranks();
  const int left = (test::rank() + test::ranks() - 1) % test::ranks();
  Buffer from(sent.model, count);
  from.fill(maker.random());
  Buffer to(received.model, received_count);
  to.fill(maker.random());
  Buffer expected = to;
  expected.unpack(from.packed());
  MPI_Request requests[2];
  MPI_Status statuses[2];
  const bool receives_first = maker.coin();
  const auto receive = [&] {
    MPI_Irecv(to.address(), received_count, received.type, left, 7, MPI_COMM_WORLD, &requests[0]);
  };
  if (receives_first) receive();
  MPI_Isend(from.address(), count, sent.type, right, 7, MPI_COMM_WORLD, &requests[1]);
  if (!receives_first) receive();
  MPI_Waitall(2, requests, statuses);
  CHECK(to.memory == expected.memory);
  int elements = -1;
  MPI_Get_count(&statuses[0], received.type, &elements);
  CHECK_EQUAL(elements, received.model.items.empty() ? 0 : received_count);
}

// A message that is shorter than the receive leaves the rest of the buffer alone.
void receive_less(Maker& maker, const Pair& pair, int count) {
  Buffer from(pair.model, count);
  from.fill(maker.random());
  const Bytes packed = from.packed();
  const auto bytes = static_cast<std::size_t>(maker.draw(0, static_cast<MPI_Count>(packed.size())));
  Buffer to(pair.model, count);
  to.fill(maker.random());
  Buffer expected = to;
  Bytes mixed = expected.packed();
  std::copy_n(packed.begin(), bytes, mixed.begin());
  expected.unpack(mixed);
  const int right = (test::rank() + 1) % test::ranks();
  const int left = (test::rank() + test::ranks() - 1) % test::ranks();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(to.address(), count, pair.type, left, 8, MPI_COMM_WORLD, &request);
  MPI_Send(packed.data(), static_cast<int>(bytes), MPI_BYTE, right, 8, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(to.memory == expected.memory);
}

// Blocking calls along the ring: the data as a typed message for a receive of bytes, then as bytes, of which there may
// be too few or too many, for a typed receive.
void exchange_blocking(Maker& maker, const Pair& pair, int count) {
  if (test::ranks() == 1) return;
  const int right = (test::rank() + 1) % test::ranks();
  const int left = (test::rank() + test::ranks() - 1) % test::ranks();
  const auto in_turn = [](auto&& send, auto&& receive) {
    if (test::rank() == 0) send();
    receive();
    if (test::rank() != 0) send();
  };
  Buffer from(pair.model, count);
  from.fill(maker.random());
  const Bytes packed = from.packed();
  const auto length = static_cast<int>(packed.size());
  const auto call = maker.coin() ? MPI_Send : MPI_Ssend;

  Bytes received(packed.size() + 1);
  MPI_Status status;
  in_turn([&] { call(from.address(), count, pair.type, right, 9, MPI_COMM_WORLD); },
          [&] { MPI_Recv(received.data(), length + 1, MPI_BYTE, left, 9, MPI_COMM_WORLD, &status); });
  int got = -1;
  MPI_Get_count(&status, MPI_BYTE, &got);
  CHECK_EQUAL(got, length);
  CHECK(std::equal(packed.begin(), packed.end(), received.begin()));

  Buffer to(pair.model, count);
  to.fill(maker.random());
  Buffer expected = to;
  const auto bytes = static_cast<int>(maker.draw(0, length + 3));
  Bytes mixed = expected.packed();
  std::copy_n(packed.begin(), std::min(bytes, length), mixed.begin());
  expected.unpack(mixed);
  Bytes sent = packed;
  sent.resize(packed.size() + 3);
  int code = MPI_SUCCESS;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  in_turn([&] { call(sent.data(), bytes, MPI_BYTE, right, 9, MPI_COMM_WORLD); },
          [&] { code = MPI_Recv(to.address(), count, pair.type, left, 9, MPI_COMM_WORLD, &status); });
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  CHECK_EQUAL(code, bytes > length ? int{MPI_ERR_TRUNCATE} : int{MPI_SUCCESS});
  CHECK(to.memory == expected.memory);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Maker maker(test::seed());
  for (int i = 0; i < 300; ++i) {
    Pair pair = test::make_small(maker);
    MPI_Type_commit(&pair.type);
    // Now and then so long that a message does not leave at once.
    const MPI_Count most = std::min<MPI_Count>(2000, 2000000 / (1 + test::reach(pair.model)));
    const auto count = static_cast<int>(maker.draw(0, maker.draw(0, 9) == 0 ? most : 3));
    if (Buffer(pair.model, count).is_receivable()) {
      exchange(maker, pair, count, pair, count);
      receive_less(maker, pair, count);
      exchange_blocking(maker, pair, count);
    }
    const int few = std::min(count, 20);
    Pair other = test::with_same_signature(pair.model.repeated(few), maker);
    exchange(maker, pair, few, other, 1);
    MPI_Type_free(&other.type);
    Maker::release(pair);
  }
  MPI_Finalize();
}
