// A queue of descriptors: the program writes down a lock, the copies that the lock protects and its unlock, posts them
// together, and computes while tonari executes them in order.
//
//   tonari run -n 4 ./queue

#include <tonari/tonari.hpp>

#include <array>
#include <cstdio>
#include <exception>

namespace {

double compute(int steps) {
  double sum = 0;
  for (int i = 1; i <= steps; ++i) sum += 1.0 / i;
  return sum;
}

int run() {
  tonari::Job job;
  // One counter in rank 0's part, and a place for each rank's message in every part.
  const std::size_t places = static_cast<std::size_t>(job.size()) + 1;
  tonari::Window window(job, places * sizeof(long));
  const tonari::View<long> numbers(window);
  tonari::Queue queue(window);
  const tonari::JobRank home{0};
  const tonari::JobRank next = (job.rank() + 1) % job.size();

  // Descriptors and the memory they name must stay where they are until the queue has returned them.
  const long message = 100 + job.rank().value();
  const auto bytes = std::as_bytes(std::span(&message, 1));
  std::array descriptors{
      tonari::Descriptor::lock(home),
      tonari::Descriptor::fetch_add(numbers.at(home, 0), 1L),
      tonari::Descriptor::unlock(home),
      tonari::Descriptor::push_notified(numbers.at(next, job.rank().index() + 1), bytes, 0),
  };
  tonari::check(queue.post(descriptors), "posting");
  const double sum = compute(100'000);  // meanwhile
  tonari::check(queue.wait_all(), "the queue");

  tonari::check(window.wait_notified(0, 1), "waiting for the rank before this one");  // its message is here
  const tonari::JobRank before = (job.rank() + job.size() - 1) % job.size();
  const long heard = numbers.local()[before.index() + 1];

  tonari::check(window.barrier());
  long counted = 0;
  tonari::check(numbers.pull(counted, home, 0));
  std::printf("rank %d: the rank before me pushed %ld; %ld ranks have counted; computed %.3f\n", job.rank().value(),
              heard, counted, sum);
  tonari::check(window.barrier());  // no rank frees its part while another one still reads it
  return heard == 100 + before.value() && counted == job.size() ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "queue: %s\n", error.what());
    return 1;
  }
}
