// Question: what does a message of data with gaps cost, described by an MPI datatype or packed by the program?
// Method:   a ping-pong of two ranks with blocking calls, always with the same memory, in batches (time_together_us).
//             column    one column of a matrix of doubles with 16 columns: MPI_Type_vector
//             face      a face of a box of doubles, rows of about as many as there are: MPI_Type_create_subarray
//             structs   an array of structs of 40 bytes without one member: two runs, of 24 and 8 bytes:
//                       MPI_Type_create_struct, MPI_Type_create_resized
//           With the suffix "by-hand" the program copies the same bytes into a buffer without gaps by a loop, sends it,
//           and copies received bytes back by a loop. All memory, with its gaps, is checked after an untimed exchange.
// Output:   latency in us, half a round trip, against bytes without gaps; case "column", "column by-hand", ...

#include "shapes.hpp"

#include "harness/batches.hpp"
#include "harness/placement.hpp"
#include "harness/worker.hpp"
#include "wires/mpi.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tonari::bench::datatypes {

namespace {

constexpr int tag_ball = 1;
constexpr double batch_us = 200;

/// The exchange of a part in its datatype.
template <class Shape>
class ByType {
 public:
  explicit ByType(Shape& shape) : shape_(shape) {}

  void send(int rank) {
    MPI_Send(shape_.memory().data(), shape_.count(), shape_.type(), rank, tag_ball, MPI_COMM_WORLD);
  }
  void receive(int rank) {
    MPI_Recv(shape_.memory().data(), shape_.count(), shape_.type(), rank, tag_ball, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

 private:
  Shape& shape_;
};

/// The exchange of a part that the program packs.
template <class Shape>
class ByHand {
 public:
  ByHand(Shape& shape, std::size_t bytes) : shape_(shape), packed_(bytes / sizeof(double)) {}

  void send(int rank) {
    shape_.pack(packed_);
    MPI_Send(packed_.data(), count(), MPI_DOUBLE, rank, tag_ball, MPI_COMM_WORLD);
  }
  void receive(int rank) {
    MPI_Recv(packed_.data(), count(), MPI_DOUBLE, rank, tag_ball, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    shape_.unpack(packed_);
  }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(packed_.size()); }

  Shape& shape_;
  std::vector<double> packed_;
};

template <class Way>
void play(Way& way, int rank) {
  if (rank == 0) {
    way.send(1);
    way.receive(1);
  } else {
    way.receive(0);
    way.send(0);
  }
}

/// Fills memory with numbers that differ between the ranks.
void fill(std::span<std::byte> memory, int rank) {
  std::size_t i = 0;
  for (auto& byte : memory) byte = static_cast<std::byte>(i++ * 7 + 1 + 100 * static_cast<std::size_t>(rank));
}

/// Exchanges once. Rank 1 must then have the part of rank 0 among its own other bytes, and rank 0 what it had.
template <class Shape, class Way>
void check(Shape& shape, Way& way, std::size_t bytes, int rank) {
  Shape expected(bytes);
  fill(expected.memory(), 0);
  std::vector<double> part(bytes / sizeof(double));
  expected.pack(part);
  if (rank == 1) {
    fill(expected.memory(), 1);
    expected.unpack(part);
  }
  fill(shape.memory(), rank);
  play(way, rank);
  if (!std::ranges::equal(shape.memory(), expected.memory())) {
    throw std::runtime_error(std::string("datatypes: wrong bytes after an exchange of ") + Shape::name);
  }
}

template <class Shape>
void measure(MpiWire& wire, const Options& options, Output& output) {
  const double budget_us = options.number("budget-us", 10000);
  for (const auto bytes : options.sizes("sizes", "1024")) {
    Shape shape(bytes);
    const auto measure_way = [&](auto way, const std::string& label) {
      check(shape, way, bytes, wire.rank());
      auto samples = time_together_us(wire, batch_us, budget_us, [&](std::uint32_t exchanges) {
        for (std::uint32_t i = 0; i < exchanges; ++i) play(way, wire.rank());
      });
      for (double& sample : samples) sample /= 2;
      output.samples({label, "latency", "us", "bytes"}, static_cast<double>(bytes), samples);
    };
    measure_way(ByType<Shape>(shape), Shape::name);
    measure_way(ByHand<Shape>(shape, bytes), std::string(Shape::name) + " by-hand");
  }
}

void run(MpiWire& wire, const Options& options, Output& output) {
  if (wire.size() != 2) throw std::invalid_argument("datatypes needs two ranks: -n 2");
  output.parameter("processors", processors(gather_places(wire)));
  for (const auto& name : options.list("cases", "column,face,structs")) {
    if (name == Column::name) measure<Column>(wire, options, output);
    if (name == Face::name) measure<Face>(wire, options, output);
    if (name == Structs::name) measure<Structs>(wire, options, output);
  }
}

}  // namespace

}  // namespace tonari::bench::datatypes

int main(int argc, char** argv) { return tonari::bench::run_rival(argc, argv, tonari::bench::datatypes::run); }
