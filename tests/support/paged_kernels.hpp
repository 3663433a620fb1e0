#pragma once

#include "page_traces.hpp"
#include "random.hpp"

#include "base/mapping.hpp"
#include "pager/page.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

// Kernels whose data may be larger than memory. Each is written once, for memory that is paged and for memory whose
// accesses are recorded. They return a digest of their results.
namespace tonari::test {

/// Cuts arrays from a piece of memory. Each begins at a page.
class ArrayMemory {
 public:
  explicit ArrayMemory(std::span<std::byte> bytes) : rest_(bytes) {}

  template <class Value>
  std::span<Value> array(std::size_t count) {
    const std::size_t bytes = (count * sizeof(Value) + pager::page_bytes - 1) / pager::page_bytes * pager::page_bytes;
    const std::span<Value> result(reinterpret_cast<Value*>(rest_.data()), count);
    rest_ = rest_.subspan(bytes);
    return result;
  }

 private:
  std::span<std::byte> rest_;
};

/// An array that records each access to it. It has the part of std::span's interface that the kernels need.
template <class Value>
class TracedArray {
 public:
  class Iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = Value*;
    using reference = Value&;

    Iterator() = default;
    Iterator(Value* at, PageTrace* trace) : at_(at), trace_(trace) {}

    Value& operator*() const {
      trace_->touch(at_);
      return *at_;
    }
    Value& operator[](std::ptrdiff_t index) const { return *(*this + index); }
    Iterator& operator+=(std::ptrdiff_t steps) {
      at_ += steps;
      return *this;
    }
    Iterator& operator-=(std::ptrdiff_t steps) { return *this += -steps; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this += -1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    friend Iterator operator+(Iterator from, std::ptrdiff_t steps) { return from += steps; }
    friend Iterator operator-(Iterator from, std::ptrdiff_t steps) { return from -= steps; }
    friend std::ptrdiff_t operator-(const Iterator& to, const Iterator& from) { return to.at_ - from.at_; }
    friend bool operator==(const Iterator& one, const Iterator& other) { return one.at_ == other.at_; }
    friend auto operator<=>(const Iterator& one, const Iterator& other) { return one.at_ <=> other.at_; }

   private:
    Value* at_ = nullptr;
    PageTrace* trace_ = nullptr;
  };

  TracedArray(std::span<Value> values, PageTrace& trace) : values_(values), trace_(&trace) {}

  Value& operator[](std::size_t index) const { return begin()[static_cast<std::ptrdiff_t>(index)]; }
  [[nodiscard]] Iterator begin() const { return {values_.data(), trace_}; }
  [[nodiscard]] Iterator end() const { return {values_.data() + values_.size(), trace_}; }

 private:
  std::span<Value> values_;
  PageTrace* trace_;
};

/// Ordinary memory whose accesses are recorded.
class TracedMemory {
 public:
  explicit TracedMemory(std::size_t bytes) : memory_(Mapping::of_sparse_zeros(bytes, "a trace's memory")) {}

  template <class Value>
  TracedArray<Value> array(std::size_t count) {
    return {arrays_.array<Value>(count), trace_};
  }
  [[nodiscard]] std::span<const std::uint32_t> trace() const { return trace_.pages(); }

 private:
  Mapping memory_;
  ArrayMemory arrays_{memory_.bytes()};
  PageTrace trace_{memory_.bytes().data()};
};

inline std::uint64_t mix(std::uint64_t digest, std::uint64_t value) noexcept {
  return (digest ^ value) * 0x9e3779b97f4a7c15ULL + 1;
}

/// Sorts random keys by their bytes, from the lowest to the highest, between two arrays.
template <class Memory>
std::uint64_t radix_sort(Memory& memory, std::size_t keys, std::uint64_t seed) {
  auto from = memory.template array<std::uint64_t>(keys);
  auto to = memory.template array<std::uint64_t>(keys);
  Random random(seed);
  for (std::uint64_t& key : from) key = random();
  for (unsigned shift = 0; shift < 64; shift += 8) {
    std::array<std::size_t, 257> places{};
    for (const std::uint64_t key : from) ++places[(key >> shift & 0xff) + 1];
    std::partial_sum(places.begin(), places.end(), places.begin());
    for (const std::uint64_t key : from) to[places[key >> shift & 0xff]++] = key;
    std::swap(from, to);
  }
  std::uint64_t digest = 0;
  for (const std::uint64_t key : from) digest = mix(digest, key);
  return digest;
}

/// Sums values by key in a hash table, and then looks up the sum of each row. `places` is a power of two.
template <class Memory>
std::uint64_t group_by(Memory& memory, std::size_t row_count, std::size_t places, std::uint64_t seed) {
  struct Row {
    std::uint64_t key;
    std::uint64_t value;
    std::array<std::uint64_t, 30> others;
  };
  struct Group {
    std::uint64_t key;  // 0: free
    std::uint64_t sum;
  };
  auto rows = memory.template array<Row>(row_count);
  auto table = memory.template array<Group>(places);
  Random random(seed);
  for (Row& row : rows) row = {between(random, 1, places / 2), random(), {}};

  const auto group_of = [&](std::uint64_t key) -> Group& {
    std::size_t place = key * 0x9e3779b97f4a7c15ULL >> (64 - std::countr_zero(places));
    for (;; place = (place + 1) % places) {
      Group& group = table[place];
      if (group.key == key || group.key == 0) return group;
    }
  };
  for (const Row& row : rows) {
    Group& group = group_of(row.key);
    group.key = row.key;
    group.sum += row.value;
  }
  std::uint64_t digest = 0;
  for (const Row& row : rows) digest = mix(digest, group_of(row.key).sum);
  return digest;
}

/// Writes a matrix row by row, and then reads every `step`th of its columns.
template <class Memory>
std::uint64_t walk_columns(Memory& memory, std::size_t rows, std::size_t columns, std::size_t step,
                           std::uint64_t seed) {
  auto matrix = memory.template array<std::uint64_t>(rows * columns);
  Random random(seed);
  for (std::uint64_t& each : matrix) each = random();
  std::uint64_t digest = 0;
  for (std::size_t column = 0; column < columns; column += step) {
    for (std::size_t row = 0; row < rows; ++row) digest = mix(digest, matrix[row * columns + column]);
  }
  return digest;
}

/// Sorts records of 64 bytes by their keys with std::sort.
template <class Memory>
std::uint64_t sort_records(Memory& memory, std::size_t count, std::uint64_t seed) {
  struct Record {
    std::uint64_t key;
    std::array<std::uint64_t, 7> others;
  };
  auto records = memory.template array<Record>(count);
  Random random(seed);
  for (Record& each : records) each = {random(), {}};
  std::sort(records.begin(), records.end(), [](const Record& one, const Record& other) { return one.key < other.key; });
  std::uint64_t digest = 0;
  for (const Record& each : records) digest = mix(digest, each.key);
  return digest;
}

/// Draws ranks from 0 that are Zipf-distributed: rank r comes with a frequency of 1 / (r + 1)^exponent.
class Zipf {
 public:
  Zipf(std::size_t ranks, double exponent) : sums_(ranks) {
    double sum = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      sum += std::pow(static_cast<double>(rank + 1), -exponent);
      sums_[rank] = sum;
    }
  }
  std::size_t operator()(Random& random) const {
    const double drawn = std::uniform_real_distribution<double>(0, sums_.back())(random);
    const auto found = std::ranges::lower_bound(sums_, drawn);
    return std::min(static_cast<std::size_t>(found - sums_.begin()), sums_.size() - 1);
  }

 private:
  std::vector<double> sums_;
};

/// Reads items of 64 bytes: some of them often, most of them seldom. The popular ones are anywhere. `items` is a power
/// of two.
template <class Memory>
std::uint64_t zipf_reads(Memory& memory, std::size_t items, std::size_t reads, std::uint64_t seed) {
  using Item = std::array<std::uint64_t, 8>;
  auto all = memory.template array<Item>(items);
  Random random(seed);
  for (Item& each : all) each.fill(random());
  const Zipf zipf(items, 0.99);
  const std::uint64_t factor = random() | 1;  // an odd factor permutes the items
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < reads; ++i) digest = mix(digest, all[zipf(random) * factor % items][i % 8]);
  return digest;
}

/// Computes a = b + s * c several times, one cache line at a time.
template <class Memory>
std::uint64_t triad(Memory& memory, std::size_t lines, std::size_t rounds, std::uint64_t seed) {
  using Line = std::array<double, 8>;
  auto a = memory.template array<Line>(lines);
  auto b = memory.template array<Line>(lines);
  auto c = memory.template array<Line>(lines);
  Random random(seed);
  for (Line& each : b) each.fill(static_cast<double>(random() >> 40));
  for (Line& each : c) each.fill(static_cast<double>(random() >> 40));
  for (std::size_t round = 1; round <= rounds; ++round) {
    for (std::size_t line = 0; line < lines; ++line) {
      const Line& from_b = b[line];
      const Line& from_c = c[line];
      Line& to = a[line];
      for (std::size_t i = 0; i < to.size(); ++i) to[i] = from_b[i] + static_cast<double>(round) * from_c[i];
    }
  }
  std::uint64_t digest = 0;
  for (const Line& each : a) digest = mix(digest, std::bit_cast<std::uint64_t>(each[0]));
  return digest;
}

}  // namespace tonari::test
