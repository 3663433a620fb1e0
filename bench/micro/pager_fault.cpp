// Question: what does it cost to touch memory that is not here, at random and in streams?
// Method:   a region of which a part has room, its source in this process's memory. Random: reads of one page each,
//           timed one by one. Streams: STREAM's triad over three arrays, against the same in ordinary memory.
// Output:   lines for people. Usage: pager_fault [random|triad|all] [MiB of the region] [percent that has room]
// [movers]

#include "base/clock.hpp"
#include "base/mapping.hpp"
#include "pager/own_space.hpp"
#include "pager/pager.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tonari {
namespace {

class MemorySource final : public pager::Source {
 public:
  explicit MemorySource(std::size_t bytes) : memory_(Mapping::of_zeros(bytes, "the source")) {}
  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override {
    std::memcpy(into.data(), memory_.bytes().data() + place, into.size());
    return Status::ok;
  }
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override {
    if (from.data() != memory_.bytes().data() + place)
      std::memcpy(memory_.bytes().data() + place, from.data(), from.size());
    return Status::ok;
  }
  Status discard(std::uint64_t /*place*/, std::uint64_t /*bytes*/) noexcept override { return Status::ok; }
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return memory_.bytes().subspan(place, bytes);
  }
  std::span<std::byte> room(std::uint64_t place, std::uint64_t bytes) noexcept override {
    return memory_.bytes().subspan(place, bytes);
  }

 private:
  Mapping memory_;
};

std::byte* align(const Mapping& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.bytes().data());
  return memory.bytes().data() + (pager::block_bytes - address % pager::block_bytes) % pager::block_bytes;
}

class Paged {
 public:
  Paged(std::size_t bytes, std::size_t limit, unsigned movers)
      : source_(bytes),
        memory_(Mapping::of_zeros(bytes + pager::block_bytes, "the region")),
        space_(pager::buffers_for(limit)),
        pager_(space_, {.limit_bytes = limit, .movers = movers}) {
    pager_.add(reinterpret_cast<pager::Address>(data()), bytes, source_);
  }
  [[nodiscard]] std::byte* data() const { return align(memory_); }
  [[nodiscard]] pager::Statistics statistics() const { return pager_.statistics(); }

 private:
  MemorySource source_;
  Mapping memory_;
  pager::OwnSpace space_;
  pager::Pager pager_;
};

void print(const pager::Statistics& now, const pager::Statistics& before) {
  const std::uint64_t faults = std::max<std::uint64_t>(now.faults - before.faults, 1);
  std::printf("  faults %lu, held %lu, late %lu, completed in %lu ns; taken out %lu blocks (%lu by faults)\n", faults,
              now.faults_met_held - before.faults_met_held, now.faults_late - before.faults_late,
              (now.fault_ns - before.fault_ns) / faults, now.blocks_taken_out - before.blocks_taken_out,
              now.blocks_taken_out_by_faults - before.blocks_taken_out_by_faults);
  std::printf(
      "  in %lu MiB, out %lu MiB, clean %lu pages, second chances %lu, read ahead %lu, hits %lu, over limit %lu\n",
      (now.bytes_in - before.bytes_in) >> 20, (now.bytes_out - before.bytes_out) >> 20,
      now.pages_clean - before.pages_clean, now.second_chances - before.second_chances,
      now.blocks_read_ahead - before.blocks_read_ahead, now.read_ahead_hits - before.read_ahead_hits,
      now.times_over_limit - before.times_over_limit);
}

void random_reads(std::size_t bytes, std::size_t limit, unsigned movers) {
  const Paged paged(bytes, limit, movers);
  volatile auto* const data = reinterpret_cast<volatile std::uint64_t*>(paged.data());
  const std::size_t words = bytes / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; i += 512) data[i] = i + 1;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) (void)data[random() % words];

  constexpr int reads = 500'000;
  std::vector<std::uint64_t> took;
  took.reserve(reads);
  const auto before = paged.statistics();
  const std::uint64_t start = monotonic_ns();
  for (int i = 0; i < reads; ++i) {
    const std::size_t at = random() % words;
    const std::uint64_t from = monotonic_ns();
    (void)data[at];
    took.push_back(monotonic_ns() - from);
  }
  const std::uint64_t all = monotonic_ns() - start;
  const auto now = paged.statistics();
  std::erase_if(took, [](std::uint64_t each) { return each < 1500; });  // no fault
  std::ranges::sort(took);
  const auto part = [&](double fraction) {
    return static_cast<double>(took[static_cast<std::size_t>(fraction * static_cast<double>(took.size() - 1))]) / 1000;
  };
  std::printf("random reads: %.0f faults/s, median %.1f us, p99 %.1f, p99.9 %.1f, max %.0f; %.0f %% of reads faulted\n",
              static_cast<double>(now.faults - before.faults) / (static_cast<double>(all) / 1e9), part(0.5), part(0.99),
              part(0.999), part(1), 100.0 * static_cast<double>(took.size()) / reads);
  print(now, before);
}

double triad(double* a, const double* b, const double* c, std::size_t count) {
  const std::uint64_t start = monotonic_ns();
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] + 3 * c[i];
  return static_cast<double>(3 * count * sizeof(double)) / static_cast<double>(monotonic_ns() - start);  // GB/s
}

double best_triad(std::byte* data, std::size_t bytes, int rounds, std::vector<double>& all) {
  const std::size_t each = bytes / 3 / pager::block_bytes * pager::block_bytes;
  auto* const a = reinterpret_cast<double*>(data);
  auto* const b = reinterpret_cast<double*>(data + each);
  auto* const c = reinterpret_cast<double*>(data + 2 * each);
  const std::size_t count = each / sizeof(double);
  for (std::size_t i = 0; i < count; ++i) a[i] = 0;
  for (std::size_t i = 0; i < count; ++i) b[i] = static_cast<double>(i);
  for (std::size_t i = 0; i < count; ++i) c[i] = 1;
  for (int round = 0; round < rounds; ++round) all.push_back(triad(a, b, c, count));
  if (a[count / 2] != b[count / 2] + 3) std::printf("WRONG\n");
  std::vector<double> sorted = all;
  std::ranges::sort(sorted);
  return sorted[sorted.size() / 2];
}

void triads(std::size_t bytes, std::size_t limit, unsigned movers) {
  std::vector<double> local_all;
  double local = 0;
  {
    const Mapping memory = Mapping::of_zeros(bytes + pager::block_bytes, "the arrays");
    ::madvise(align(memory), bytes, MADV_HUGEPAGE);
    local = best_triad(align(memory), bytes, 7, local_all);
  }
  const Paged paged(bytes, limit, movers);
  std::vector<double> paged_all;
  const double far = best_triad(paged.data(), bytes, 7, paged_all);
  std::printf("triad: local %.2f GB/s, paged %.2f GB/s: %.0f %%\n", local, far, 100 * far / local);
  print(paged.statistics(), {});
}

}  // namespace
}  // namespace tonari

int main(int count, char** arguments) {
  const std::string_view what = count > 1 ? arguments[1] : "all";
  const std::size_t bytes = (count > 2 ? std::stoul(arguments[2]) : 768) << 20;
  const std::size_t limit = bytes / 100 * (count > 3 ? std::stoul(arguments[3]) : 20);
  const auto movers = static_cast<unsigned>(count > 4 ? std::stoul(arguments[4]) : 1);
  if (what != "triad") tonari::random_reads(bytes, limit, movers);
  if (what != "random") tonari::triads(bytes, limit, movers);
}
