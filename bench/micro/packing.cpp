// Question: what does it cost to keep pages compressed, and how much smaller do they get?
// Method:   far memory's packed store over a server in this process; 64 MiB of each kind of data are stored and fetched
//           block by block, in ten rounds, of which the median is told.
// Output:   lines for people: microseconds per page, and the share of their size that pages take. Usage: packing

#include "base/clock.hpp"
#include "far/packed_store.hpp"

#include <tonari/job.hpp>
#include <tonari/window.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <vector>

namespace tonari {
namespace {

using pager::block_bytes;
using pager::page_bytes;

constexpr std::size_t data_bytes = 64 << 20;
constexpr std::size_t pages = data_bytes / page_bytes;
constexpr int rounds = 10;

template <class Value, class Make>
std::vector<std::byte> array_of(Make make) {
  std::vector<std::byte> bytes(data_bytes);
  for (std::size_t i = 0; i < data_bytes / sizeof(Value); ++i) {
    const auto value = static_cast<Value>(make(i));
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

// This program, again and again.
std::vector<std::byte> of_a_program() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> code(std::istreambuf_iterator<char>(file), {});
  return array_of<char>([&](std::size_t i) { return code[i % code.size()]; });
}

// In microseconds.
template <class Body>
double median_of_pages(Body body) {
  std::vector<double> took;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t start = monotonic_ns();
    for (std::size_t place = 0; place < data_bytes; place += block_bytes) {
      if (body(place) != Status::ok) std::puts("WRONG");
    }
    took.push_back(static_cast<double>(monotonic_ns() - start) / 1000 / static_cast<double>(pages));
  }
  std::ranges::nth_element(took, took.begin() + rounds / 2);
  return took[rounds / 2];
}

void measure(Window& window, const char* what, const std::vector<std::byte>& data) {
  far::Servers servers(window, {1}, 1);
  far::Store store(servers, window.bytes(JobRank{1}));
  far::PackedStore packed(store, data_bytes);
  const double out = median_of_pages(
      [&](std::size_t place) { return packed.store(place, std::span(data).subspan(place, block_bytes)); });
  std::vector<std::byte> found(data_bytes);
  const double in = median_of_pages(
      [&](std::size_t place) { return packed.fetch(place, std::span(found).subspan(place, block_bytes)); });
  if (found != data) std::puts("WRONG");
  std::printf("%-20s store %5.2f us, fetch %5.2f us, %5.1f %% of its size\n", what, out, in,
              100 * static_cast<double>(packed.packed_bytes()) / data_bytes);
  (void)packed.discard(0, data_bytes);
}

void measure_all(Window& window) {
  std::mt19937_64 random(1);
  measure(window, "counts below 1000", array_of<std::uint32_t>([&](auto) { return random() % 1000; }));
  measure(window, "sorted keys", array_of<std::uint64_t>([&](std::size_t i) { return i * 100 + random() % 100; }));
  measure(window, "one in ten not 0", array_of<double>([&](auto) { return random() % 10 == 0 ? 1.0 / 3 : 0.0; }));
  measure(window, "a sine", array_of<double>([](std::size_t i) { return std::sin(static_cast<double>(i) / 1000); }));
  measure(window, "this program", of_a_program());
  measure(window, "random bits", array_of<std::uint64_t>([&](auto) { return random(); }));
}

}  // namespace
}  // namespace tonari

int main() {
  tonari::run_as_threads(2, [](tonari::Job& job) {
    tonari::Window window(job, job.rank() == 0 ? 0 : 3 * tonari::data_bytes);
    if (job.rank() == 0) tonari::measure_all(window);
    (void)window.barrier();
  });
}
