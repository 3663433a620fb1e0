// ranks: 1 2 3 5 8
#include "choices.hpp"

#include <algorithm>
#include <memory>
#include <vector>

// Many started collectives at once, completed by each rank in an order and a way of its own, and persistent ones, which
// each rank starts in an order of its own.
namespace {

using test::below;
using test::private_random;
using test::shared_random;

// A collective of longs with its buffers.
class Collective {
 public:
  Collective() : kind_(below(shared_random, 8)), root_(below(shared_random, test::ranks())) {
    const int most = below(shared_random, 6) == 0 ? 12000 : 30;
    count_ = 1 + below(shared_random, most);
    const auto all = static_cast<std::size_t>(count_ * test::ranks());
    sent_.resize(all);
    received_.resize(all);
  }

  void start(MPI_Request* request) {
    MPI_Comm comm = MPI_COMM_WORLD;
    switch (kind_) {
      case 0: MPI_Ibarrier(comm, request); break;
      case 1: MPI_Ibcast(received_.data(), count_, MPI_LONG, root_, comm, request); break;
      case 2: MPI_Iallreduce(sent_.data(), received_.data(), count_, MPI_LONG, MPI_SUM, comm, request); break;
      case 3: MPI_Iallgather(sent_.data(), count_, MPI_LONG, received_.data(), count_, MPI_LONG, comm, request); break;
      case 4: MPI_Ialltoall(sent_.data(), count_, MPI_LONG, received_.data(), count_, MPI_LONG, comm, request); break;
      case 5: MPI_Iscan(sent_.data(), received_.data(), count_, MPI_LONG, MPI_MAX, comm, request); break;
      case 6: MPI_Ireduce(sent_.data(), received_.data(), count_, MPI_LONG, MPI_SUM, root_, comm, request); break;
      default: MPI_Igather(sent_.data(), count_, MPI_LONG, received_.data(), count_, MPI_LONG, root_, comm, request);
    }
  }
  void prepare(MPI_Request* request) {
    MPI_Comm comm = MPI_COMM_WORLD;
    long* const sent = sent_.data();
    long* const received = received_.data();
    switch (kind_) {
      case 0: MPI_Barrier_init(comm, MPI_INFO_NULL, request); break;
      case 1: MPI_Bcast_init(received, count_, MPI_LONG, root_, comm, MPI_INFO_NULL, request); break;
      case 2: MPI_Allreduce_init(sent, received, count_, MPI_LONG, MPI_SUM, comm, MPI_INFO_NULL, request); break;
      case 3:
        MPI_Allgather_init(sent, count_, MPI_LONG, received, count_, MPI_LONG, comm, MPI_INFO_NULL, request);
        break;
      case 4:
        MPI_Alltoall_init(sent, count_, MPI_LONG, received, count_, MPI_LONG, comm, MPI_INFO_NULL, request);
        break;
      case 5: MPI_Scan_init(sent, received, count_, MPI_LONG, MPI_MAX, comm, MPI_INFO_NULL, request); break;
      case 6: MPI_Reduce_init(sent, received, count_, MPI_LONG, MPI_SUM, root_, comm, MPI_INFO_NULL, request); break;
      default: MPI_Gather_init(sent, count_, MPI_LONG, received, count_, MPI_LONG, root_, comm, MPI_INFO_NULL, request);
    }
  }

  // Fills the buffers for the collective `number`.
  void fill(int number) {
    for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = value(number, test::rank(), static_cast<int>(i));
    std::fill(received_.begin(), received_.end(), -1);
    for (int i = 0; kind_ == 1 && test::rank() == root_ && i < count_; ++i)
      received_[static_cast<std::size_t>(i)] = value(number, root_, i);
  }
  void check(int number) const {
    const int ranks = test::ranks();
    const int me = test::rank();
    for (int i = 0; i < count_; ++i) {
      long sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += value(number, rank, i);
      switch (kind_) {
        case 0: break;
        case 1: CHECK_EQUAL(at(i), value(number, root_, i)); break;
        case 2: CHECK_EQUAL(at(i), sum); break;
        case 3:
          for (int rank = 0; rank < ranks; ++rank) CHECK_EQUAL(at(rank * count_ + i), value(number, rank, i));
          break;
        case 4:
          for (int rank = 0; rank < ranks; ++rank)
            CHECK_EQUAL(at(rank * count_ + i), value(number, rank, me * count_ + i));
          break;
        case 5: CHECK_EQUAL(at(i), value(number, me, i)); break;
        case 6: CHECK_EQUAL(at(i), me == root_ ? sum : -1); break;
        default:
          for (int rank = 0; rank < ranks; ++rank) {
            CHECK_EQUAL(at(rank * count_ + i), me == root_ ? value(number, rank, i) : -1);
          }
      }
    }
  }

 private:
  // Grows with the rank.
  static long value(int number, int rank, int i) { return number * 1000003L + rank * 7919L + i; }
  [[nodiscard]] long at(int i) const { return received_[static_cast<std::size_t>(i)]; }

  int kind_;
  int root_;
  int count_;
  std::vector<long> sent_;
  std::vector<long> received_;
};

// Completes all requests in one of several ways.
void complete(std::vector<MPI_Request>& requests) {
  const auto count = static_cast<int>(requests.size());
  switch (below(private_random, 4)) {
    case 0: MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE); break;
    case 1:
      for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
      break;
    case 2:
      for (int index = 0; index != MPI_UNDEFINED;) MPI_Waitany(count, requests.data(), &index, MPI_STATUS_IGNORE);
      break;
    default:
      for (int flag = 0; flag == 0;) MPI_Testall(count, requests.data(), &flag, MPI_STATUSES_IGNORE);
  }
}

void start_many(int count) {
  std::vector<Collective> collectives(static_cast<std::size_t>(count));
  std::vector<MPI_Request> requests(collectives.size());
  for (std::size_t i = 0; i < collectives.size(); ++i) {
    collectives[i].fill(static_cast<int>(i));
    collectives[i].start(&requests[i]);
    // A blocking collective between started ones.
    if (i == collectives.size() / 2) MPI_Barrier(MPI_COMM_WORLD);
  }
  std::shuffle(requests.begin(), requests.end(), private_random);
  complete(requests);
  for (std::size_t i = 0; i < collectives.size(); ++i) collectives[i].check(static_cast<int>(i));
}

void start_persistent(int count) {
  std::vector<Collective> collectives(static_cast<std::size_t>(count));
  std::vector<MPI_Request> requests(collectives.size());
  for (std::size_t i = 0; i < collectives.size(); ++i) collectives[i].prepare(&requests[i]);
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < collectives.size(); ++i) collectives[i].fill(turn * 100 + static_cast<int>(i));
    std::vector<MPI_Request> order(requests);
    std::shuffle(order.begin(), order.end(), private_random);
    if (turn % 2 == 0) {
      MPI_Startall(count, order.data());
    } else {
      for (MPI_Request& request : order) MPI_Start(&request);
    }
    MPI_Waitall(count, order.data(), MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < collectives.size(); ++i) collectives[i].check(turn * 100 + static_cast<int>(i));
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  test::seed_choices();
  for (int turn = 0; turn < 15; ++turn) {
    start_many(1 + below(shared_random, 30));
    start_persistent(1 + below(shared_random, 10));
  }
  MPI_Finalize();
}
