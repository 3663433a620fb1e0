#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace tonari::bench::integer_sort {

// The integer sort of the NAS Parallel Benchmarks (IS), version 3: its keys, steps and tests.

/// A size that NPB defines. After iteration i, the keys at five positions of the sequence must have the ranks that NPB
/// publishes: at the first `low` positions ranks grow by i, at the others they fall.
struct SortClass {
  std::string_view name;
  int keys_log2;
  int key_max_log2;
  int buckets_log2;
  std::array<std::size_t, 5> test_index;
  std::array<std::int64_t, 5> test_rank;
  int low;
  int low_shift;
  int high_shift;

  [[nodiscard]] std::size_t keys() const noexcept { return std::size_t{1} << keys_log2; }
  [[nodiscard]] int key_end() const noexcept { return 1 << key_max_log2; }
  [[nodiscard]] std::size_t buckets() const noexcept { return std::size_t{1} << buckets_log2; }
  [[nodiscard]] std::size_t bucket_of(int key) const noexcept {
    return static_cast<std::size_t>(key >> (key_max_log2 - buckets_log2));
  }
  [[nodiscard]] std::int64_t expected_rank(std::size_t test, int iteration) const noexcept {
    const bool grows = static_cast<int>(test) < low;
    return test_rank[test] + (grows ? iteration + low_shift : -(iteration + high_shift));
  }
};

inline constexpr std::array<SortClass, 3> sort_classes{
    {{"S", 16, 11, 9, {48427, 17148, 23627, 62548, 4431}, {0, 18, 346, 64917, 65463}, 3, 0, 0},
     {"W", 20, 16, 10, {357773, 934767, 875723, 898999, 404505}, {1249, 11698, 1039987, 1043896, 1048018}, 2, -2, 0},
     {"A",
      23,
      19,
      10,
      {2112377, 662041, 5336171, 3642833, 4250760},
      {104, 17523, 123928, 8288932, 8388264},
      3,
      -1,
      -1}}};

inline constexpr int iterations_max = 10;
inline constexpr int changing_keys =
    2 * iterations_max + 1;  // keys that iterations change are among this many first ones

/// NPB's generator: x = 5^13 x modulo 2^46, read as a fraction.
class Generator {
 public:
  /// Skips the first `skipped` numbers.
  explicit Generator(std::uint64_t skipped) noexcept {
    std::uint64_t factor = multiplier;
    for (; skipped != 0; skipped /= 2, factor = factor * factor & mask) {
      if (skipped % 2 != 0) state_ = state_ * factor & mask;
    }
  }
  double next() noexcept {
    state_ = state_ * multiplier & mask;
    return static_cast<double>(state_) * 0x1p-46;
  }

 private:
  static constexpr std::uint64_t multiplier = 1220703125;
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 46) - 1;
  std::uint64_t state_ = 314159265;
};

/// Rank r's part of the keys is [first(r), first(r + 1)).
inline std::size_t first_key(const SortClass& sort, int rank, int ranks) noexcept {
  return sort.keys() * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks);
}

inline std::vector<int> make_keys(const SortClass& sort, std::size_t first, std::size_t end) {
  Generator generator(4 * first);
  std::vector<int> keys(end - first);
  for (int& key : keys) {
    const double sum = generator.next() + generator.next() + generator.next() + generator.next();
    key = static_cast<int>(sort.key_end() / 4 * sum);
  }
  return keys;
}

/// A summary of one rank's keys, to check the result. Sent in this layout.
struct Sorted {
  std::uint64_t sum_before;
  std::uint64_t sum_after;
  int lowest;  // above highest: the rank has no keys
  int highest;
};

/// Returns true if no key was lost or changed, and no rank has a lower key than the ranks before it.
inline bool is_sorted(const std::vector<Sorted>& ranks) noexcept {
  std::uint64_t sum = 0;
  int highest = -1;
  for (const auto& rank : ranks) {
    sum += rank.sum_after - rank.sum_before;
    if (rank.lowest < highest) return false;
    highest = std::max(highest, rank.highest);
  }
  return sum == 0;
}

/// `Exchange` supplies the collectives: sum(values) in place, all_to_all(sent, received),
/// all_to_all_v(sent, counts, received, counts).
template <class Exchange>
class Sort {
 public:
  Sort(Exchange& exchange, const SortClass& sort, int rank, int ranks)
      : exchange_(exchange),
        sort_(sort),
        rank_(rank),
        ranks_(static_cast<std::size_t>(ranks)),
        first_(first_key(sort, rank, ranks)),
        keys_(make_keys(sort, first_, first_key(sort, rank + 1, ranks))),
        changed_(keys_.begin(), keys_.begin() + std::min<std::ptrdiff_t>(std::ssize(keys_), changing_keys)),
        sums_(sort.buckets() + sort.test_index.size()),
        last_bucket_(ranks_) {}

  /// Ranks the keys once; the first call is iteration 1. Returns how many of the five keys are on this rank and do not
  /// have the published rank.
  int iterate(int iteration) {
    change_keys(iteration);
    const auto mine = count();
    exchange_.sum(sums_);
    divide();
    exchange_keys(mine);
    rank_keys();
    return misplaced_tests(iteration);
  }

  /// Restores the keys as they were before iteration 1.
  void restart() { std::ranges::copy(changed_, keys_.begin()); }

  /// Returns this rank's part of the check that the keys are sorted and unchanged.
  [[nodiscard]] Sorted sorted() const {
    Sorted found{0, 0, sort_.key_end(), -1};
    for (const int key : keys_) found.sum_before += mix(key);
    for (std::size_t value = 0; value < lesser_.size(); ++value) {
      const auto end = value + 1 < lesser_.size() ? lesser_[value + 1] : static_cast<std::int64_t>(received_.size());
      if (end == lesser_[value]) continue;
      const int key = first_value_ + static_cast<int>(value);
      found.sum_after += mix(key) * static_cast<std::uint64_t>(end - lesser_[value]);
      found.lowest = std::min(found.lowest, key);
      found.highest = key;
    }
    return found;
  }

 private:
  /// Changes two keys at the start of the sequence in each iteration, so that no iteration can be skipped.
  void change_keys(int iteration) {
    const auto set = [&](int index, int key) {
      const auto place = static_cast<std::size_t>(index);
      if (place >= first_ && place < first_ + keys_.size()) keys_[place - first_] = key;
    };
    set(iteration, iteration);
    set(iteration + iterations_max, sort_.key_end() - iteration);
  }

  /// Counts this rank's keys per bucket. Also puts the counts into the sums, followed by the counts of the five test
  /// keys that this rank has.
  std::vector<std::int64_t> count() {
    std::ranges::fill(sums_, 0);
    for (const int key : keys_) ++sums_[sort_.bucket_of(key)];
    const std::vector<std::int64_t> mine(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(sort_.buckets()));
    for (std::size_t test = 0; test < sort_.test_index.size(); ++test) {
      const auto place = sort_.test_index[test];
      if (place >= first_ && place < first_ + keys_.size()) sums_[sort_.buckets() + test] = keys_[place - first_];
    }
    return mine;
  }

  /// Deals buckets to the ranks in order, so that all ranks get about the same number of keys.
  void divide() {
    std::size_t rank = 0;
    std::int64_t dealt = 0;
    for (std::size_t bucket = 0; bucket < sort_.buckets(); ++bucket) {
      dealt += sums_[bucket];
      while (rank + 1 < ranks_ &&
             dealt * static_cast<std::int64_t>(ranks_) >= static_cast<std::int64_t>(sort_.keys() * (rank + 1))) {
        last_bucket_[rank++] = bucket + 1;
      }
    }
    while (rank < ranks_) last_bucket_[rank++] = sort_.buckets();
  }
  [[nodiscard]] std::size_t first_bucket(std::size_t rank) const noexcept {
    return rank == 0 ? 0 : last_bucket_[rank - 1];
  }

  void exchange_keys(const std::vector<std::int64_t>& mine) {
    std::vector<std::size_t> ends(sort_.buckets());
    std::exclusive_scan(mine.begin(), mine.end(), ends.begin(), std::size_t{0});
    std::vector<int> by_bucket(keys_.size());
    for (const int key : keys_) by_bucket[ends[sort_.bucket_of(key)]++] = key;

    std::vector<std::size_t> sent(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      for (auto bucket = first_bucket(rank); bucket < last_bucket_[rank]; ++bucket) {
        sent[rank] += static_cast<std::size_t>(mine[bucket]);
      }
    }
    std::vector<std::size_t> received(ranks_);
    exchange_.all_to_all(sent, received);
    received_.resize(std::accumulate(received.begin(), received.end(), std::size_t{0}));
    exchange_.all_to_all_v(by_bucket, sent, received_, received);
  }

  /// Counts, for each value in this rank's buckets, the lesser keys in these buckets.
  void rank_keys() {
    const auto me = static_cast<std::size_t>(rank_);
    const int shift = sort_.key_max_log2 - sort_.buckets_log2;
    first_value_ = static_cast<int>(first_bucket(me) << shift);
    std::vector<std::int64_t> counts((last_bucket_[me] - first_bucket(me)) << shift);
    for (const int key : received_) ++counts.at(static_cast<std::size_t>(key - first_value_));
    lesser_.resize(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), lesser_.begin(), std::int64_t{0});
  }

  [[nodiscard]] int misplaced_tests(int iteration) const {
    const auto buckets_end = sums_.begin() + static_cast<std::ptrdiff_t>(first_bucket(static_cast<std::size_t>(rank_)));
    const auto before = std::accumulate(sums_.begin(), buckets_end, std::int64_t{0});
    int misplaced = 0;
    for (std::size_t test = 0; test < sort_.test_index.size(); ++test) {
      const auto place = sums_[sort_.buckets() + test] - first_value_;
      if (place < 0 || place >= static_cast<std::int64_t>(lesser_.size())) continue;  // another rank has it
      if (before + lesser_[static_cast<std::size_t>(place)] != sort_.expected_rank(test, iteration)) ++misplaced;
    }
    return misplaced;
  }

  /// A hash of a key; the sum over all keys detects a changed key.
  static std::uint64_t mix(int key) noexcept {
    const auto spread = (static_cast<std::uint64_t>(key) + 1) * 0x9e3779b97f4a7c15;
    return (spread ^ spread >> 29) * 0xbf58476d1ce4e5b9;
  }

  Exchange& exchange_;
  const SortClass& sort_;
  int rank_;
  std::size_t ranks_;
  std::size_t first_;
  std::vector<int> keys_;
  std::vector<int> changed_;              // the original first keys, among them all that iterations change
  std::vector<std::int64_t> sums_;        // keys per bucket, then the five test keys
  std::vector<std::size_t> last_bucket_;  // per rank, and one more
  std::vector<int> received_;
  int first_value_ = 0;
  std::vector<std::int64_t> lesser_;
};

}  // namespace tonari::bench::integer_sort
