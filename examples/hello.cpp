// A first program: every rank greets its neighbour, and all add up their numbers.
//
//   tonari run -n 4 ./hello

#include <tonari/tonari.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

/// Stops the program with a line that says what went wrong. Nothing in tonari's messages throws.
void expect_ok(tonari::Status status) {
  if (status == tonari::Status::ok) return;
  throw std::runtime_error(std::string(tonari::explain(status)));
}

int run() {
  tonari::Job job;                  // joins: as one rank of `tonari run`, or alone as a job of one
  tonari::Communicator world(job);  // all ranks of the job
  const int rank = world.rank().value();
  const int size = world.size();

  // Round the ring: a message to the next rank, one from the rank before. The receive is started first, so that the
  // greeting goes straight into its place.
  const tonari::Rank next = world.neighbour(+1);
  const tonari::Rank before = world.neighbour(-1);
  std::string heard(64, '\0');
  auto coming = world.start_receive(heard, before);
  const std::string greeting = "good morning from rank " + std::to_string(rank);
  expect_ok(world.send(greeting, next));
  const auto [status, envelope] = coming.wait();
  expect_ok(status);
  heard.resize(envelope.bytes);
  std::printf("rank %d of %d heard: %s\n", rank, size, heard.c_str());

  // One number of each rank, and every rank has their sum.
  int sum = rank;
  expect_ok(world.all_reduce(sum));
  const bool right = sum == size * (size - 1) / 2 && heard == "good morning from rank " + to_string(before);
  if (!right) std::printf("rank %d: that is wrong: the sum is %d\n", rank, sum);
  return right ? 0 : 1;
}  // the Job is destroyed: the rank leaves

}  // namespace

int main() {
  try {
    return run();
  } catch (const tonari::SetupError& error) {  // the job cannot be joined: the text says why, and what helps
    std::fprintf(stderr, "hello: %s\n", error.what());
    return 1;
  }
}
