#include "../far_libraries.hpp"

#include <cstdlib>
#include <thread>

namespace {

std::array<std::uint64_t, plugin_zeros> zeros;
std::array<std::uint64_t, plugin_values> values{3, 1};
std::atomic<std::uint64_t> rounds;
std::atomic<bool> is_over;
std::thread thread;

void count_up() {
  while (!is_over) {
    for (std::size_t word = 0; word < plugin_zeros; word += 3 * plugin_stride) ++zeros[word];
    ++rounds;
  }
}

struct Early {
  Early() {
    zeros[100] = 6;
    values.back() = 9;
    if (std::getenv("FAR_PLUGIN_THREAD") != nullptr) thread = std::thread(count_up);
  }
} early;

void stop() {
  is_over = true;
  if (thread.joinable()) thread.join();
}

}  // namespace

Plugin far_plugin() { return {&zeros, &values, &rounds, stop}; }
