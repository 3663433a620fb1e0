// Question: how fast is STREAM's triad over arrays of which a part is local?
// Method:   a(i) = b(i) + s * c(i) over three arrays, pass after pass, with another s each time, so that a changes. The
//           first pass is dropped. Bytes count as in STREAM: three numbers per element. Case "remote": before each
//           pass, more pages than are local, in other memory than the arrays, are written in an unpredictable order,
//           twice. No part of the arrays is local then, and each chunk is fetched once.
// Output:   triad in GB/s, one sample per pass; wire, the traffic of --interface meanwhile, in GB/s; wrong elements.
// Options:  --size=BYTES of all memory; --case=threads or remote; --interface=NAME

#include "harness/far_program.hpp"

#include <fstream>
#include <utility>

namespace {

using namespace tonari::bench;
using namespace tonari::bench::far;

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t pages_apart = 53;  // arrays 256 MiB apart would share cache sets: half the speed
constexpr int passes_max = 12;

struct Arrays {
  double* a;
  double* b;
  double* c;
  std::size_t count;
};

double first(std::size_t i) { return fraction(i); }
double second(std::size_t i) { return fraction(~i); }

void initialise(const Arrays& arrays) {
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < arrays.count; ++i) arrays.a[i] = 0;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < arrays.count; ++i) arrays.b[i] = first(i);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < arrays.count; ++i) arrays.c[i] = second(i);
}

void triad(const Arrays& arrays, double scalar) {
  double* const a = arrays.a;
  const double* const b = arrays.b;
  const double* const c = arrays.c;
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < arrays.count; ++i) a[i] = b[i] + scalar * c[i];
}

double wrong(const Arrays& arrays, double scalar) {
  std::size_t count = 0;
#pragma omp parallel for schedule(static) reduction(+ : count)
  for (std::size_t i = 0; i < arrays.count; ++i) count += arrays.a[i] != first(i) + scalar * second(i) ? 1 : 0;
  return static_cast<double>(count);
}

/// Other memory, more than is local. At 100 per cent there is nothing to push out; its size is then as at 20 per cent.
std::size_t beside_bytes(std::size_t bytes, double local_percent) {
  const double percent = local_percent < 100 ? local_percent : 20;
  return static_cast<std::size_t>(static_cast<double>(bytes) * (percent + 5) / 100) / page_bytes * page_bytes;
}

/// Writes to all pages, in a different random order each pass.
void push_out(unsigned char* beside, std::size_t bytes, std::uint64_t seed) {
  const std::size_t pages = bytes / page_bytes;
  std::vector<std::size_t> order(pages);
  for (std::size_t i = 0; i < pages; ++i) order[i] = i;
  for (int twice = 0; twice < 2; ++twice) {
    for (std::size_t i = pages; i > 1; --i) std::swap(order[i - 1], order[mix(seed + i) % i]);
    for (const std::size_t page : order) beside[page * page_bytes] = static_cast<unsigned char>(seed + page);
  }
}

/// The bytes that an interface has received and sent. The loopback device receives all that it sends: there, only the
/// sent.
double carried_bytes(const std::string& interface) {
  double all = 0;
  for (const char* const way : {"tx_bytes", "rx_bytes"}) {
    if (interface.empty() || (interface == "lo" && way[0] == 'r')) continue;
    double bytes = 0;
    if (!(std::ifstream("/sys/class/net/" + interface + "/statistics/" + way) >> bytes)) {
      throw std::runtime_error("there is no interface " + interface);
    }
    all += bytes;
  }
  return all;
}

void measure(const Options& options, Output& output) {
  const auto bytes = static_cast<std::size_t>(options.number("size", 768 << 20));
  const bool remote = options.text("case", "threads") == "remote";
  const std::size_t pushed = remote ? beside_bytes(bytes, options.number("local", 100)) : 0;
  const auto interface = options.text("interface", "");
  const double budget_s = options.number("budget-s", 10);
  const Data data(options, bytes);
  const std::size_t count = ((bytes - pushed) / 3 / page_bytes - pages_apart) * (page_bytes / sizeof(double));
  auto* const memory = data.array<double>(0, 1);
  const Arrays arrays{memory, memory + count, memory + 2 * count, count};
  auto* const beside = reinterpret_cast<unsigned char*>(memory + 3 * count);
  initialise(arrays);

  std::vector<double> rates;
  std::vector<double> carried;
  double spent_s = 0;
  int pass = 0;
  const int dropped = remote ? 0 : 1;
  while (pass < dropped + 2 || (pass < dropped + passes_max && spent_s < budget_s)) {
    if (remote) push_out(beside, pushed, static_cast<std::uint64_t>(pass) << 40);
    const double carried_before = carried_bytes(interface);
    const double start_s = now_s();
    triad(arrays, ++pass);
    const double took_s = now_s() - start_s;
    spent_s += took_s;
    if (pass <= dropped) continue;
    rates.push_back(static_cast<double>(3 * count * sizeof(double)) / took_s / 1e9);
    carried.push_back((carried_bytes(interface) - carried_before) / took_s / 1e9);
  }

  Answers answers(options, output, remote ? "remote" : threads_label(options));
  answers.add("triad", "GB/s", rates);
  if (!interface.empty()) answers.add("wire", "GB/s", carried);
  answers.check("wrong", wrong(arrays, pass), 1);
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, measure); }
