// Locks: the ranks change two numbers that must always change together. With a mutex and a shared array, tonari moves
// the data between ranks; with a lock of a window, the program copies them itself.
//
//   tonari run -n 4 ./locks

#include <tonari/tonari.hpp>

#include <array>
#include <cstdio>
#include <stdexcept>

namespace {

constexpr int rounds = 100;

// The holder of the mutex sees everything that its previous holder wrote.
void exchange_under_mutex(tonari::share::mutex& mutex, tonari::shared_array<long>& pair) {
  for (int i = 0; i < rounds; ++i) {
    auto lock = mutex.lock();
    // A lock must be tested: it holds nothing if it failed, and after holder_died the data may be half written.
    if (lock.status() != tonari::Status::ok) throw tonari::Error(lock.status(), "locking the mutex");
    pair[0] += 1;
    pair[1] -= 1;
    tonari::check(lock.release(), "unlocking the mutex");
  }
}

// The same with one-sided copies to and from rank 0's part of a window.
void exchange_under_window_lock(tonari::Window& window, const tonari::View<long>& numbers) {
  const tonari::JobRank home{0};
  for (int i = 0; i < rounds; ++i) {
    tonari::check(window.lock(home), "locking rank 0's part");
    std::array<long, 2> pair{};
    tonari::check(numbers.pull(std::span(pair), home, 0));
    pair[0] += 1;
    pair[1] -= 1;
    tonari::check(numbers.push(home, 0, std::span<const long>(pair)));
    tonari::check(window.unlock(home), "unlocking rank 0's part");  // the pushed numbers are visible to the next holder
  }
}

int run() {
  tonari::Job job;
  tonari::share::mutex mutex(job);
  tonari::shared_array<long> pair(job, 2);
  tonari::Window window(job, 2 * sizeof(long));
  const tonari::View<long> numbers(window);

  exchange_under_mutex(mutex, pair);
  exchange_under_window_lock(window, numbers);

  tonari::check(tonari::share::barrier(job));
  std::array<long, 2> pulled{};
  tonari::check(numbers.pull(std::span(pulled), tonari::JobRank{0}, 0));
  const long expected = long{rounds} * job.size();
  std::printf("rank %d of %d: %ld and %ld under the mutex, %ld and %ld under the window's lock\n", job.rank().value(),
              job.size(), long{pair[0]}, long{pair[1]}, pulled[0], pulled[1]);
  const bool is_right = pair[0] == expected && pair[1] == -expected && pulled[0] == expected && pulled[1] == -expected;
  tonari::check(tonari::share::barrier(job));  // no rank frees its part while another one still reads it
  return is_right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "locks: %s\n", error.what());
    return 1;
  }
}
