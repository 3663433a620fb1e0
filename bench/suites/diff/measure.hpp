#pragma once

// Question: how fast are the differences between a page and its twin found, and stored to a target?
// Method:   one process. Pages of 4096 bytes, each with a twin and a target, one after the other. Some per cent of the
//           bytes of each page differ from the twin:
//             scattered  single bytes, anywhere
//             runs       runs of 64 bytes that begin at a multiple of 8; at least one, unless nothing differs
//           16 pages, 192 KiB in all, which fit the second-level cache; or (-cold) pages of four times the last-level
//           cache, in an order that no prefetcher predicts. Every page has its own pattern, so that no branch is
//           learnt. A sample is a batch of about 20 us. Afterwards every target must have the differing bytes, and its
//           previous bytes elsewhere. Systems: tonari, at any level; a loop over all bytes; memcmp of 64 bytes, then
//           that loop.
// Output:   rate in GB/s of pages (twins and targets are not counted) against per cent changed. For tonari also the
//           bytes that would travel per page in a message: the differing bytes, and 8 per run.

#include "harness/batches.hpp"
#include "harness/buffers.hpp"
#include "harness/worker.hpp"

#include "base/clock.hpp"
#include "window/local/diff.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::diff {

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t warm_pages = 16;
inline constexpr std::size_t run_bytes = 64;
inline constexpr std::size_t run_head_bytes = 8;  // its place and length
inline constexpr double batch_us = 20;

/// A byte of a target that was not stored to; differs from all bytes of twins and data.
inline constexpr std::byte untouched{0};

struct ByTonari {
  const tonari::window::DiffCode& code;

  void store(std::byte* target, const std::byte* data, const std::byte* twin) const noexcept {
    tonari::window::store_differences(target, data, twin, page_bytes, code);
  }
};

inline void store_bytes(std::byte* target, const std::byte* data, const std::byte* twin, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (data[i] != twin[i]) target[i] = data[i];
  }
}

struct ByLoop {
  [[gnu::noinline]] void store(std::byte* target, const std::byte* data, const std::byte* twin) const noexcept {
    store_bytes(target, data, twin, page_bytes);
  }
};

struct ByMemcmp {
  [[gnu::noinline]] void store(std::byte* target, const std::byte* data, const std::byte* twin) const noexcept {
    for (std::size_t at = 0; at < page_bytes; at += line_bytes) {
      if (std::memcmp(data + at, twin + at, line_bytes) == 0) continue;
      store_bytes(target + at, data + at, twin + at, line_bytes);
    }
  }
};

/// Pages that take `bytes` together with their twins and targets.
class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : count_(std::max<std::size_t>(bytes / (3 * page_bytes), warm_pages)),
        data_(count_ * page_bytes),
        twins_(count_ * page_bytes),
        targets_(count_ * page_bytes) {}

  /// Makes `percent` of the bytes of each page differ: single bytes, or runs.
  void change(unsigned percent, bool runs) {
    std::mt19937_64 random(percent);
    fill_twins(random);
    std::memcpy(data_.bytes().data(), twins_.bytes().data(), data_.bytes().size());
    std::memset(targets_.bytes().data(), static_cast<int>(untouched), targets_.bytes().size());
    std::vector<std::size_t> places(runs ? page_bytes / run_bytes : page_bytes);
    std::iota(places.begin(), places.end(), std::size_t{0});
    const std::size_t changed = (places.size() * percent + 99) / 100;
    for (std::size_t page = 0; page < count_; ++page) {
      std::byte* const data = data_.bytes().data() + page * page_bytes;
      for (std::size_t i = 0; i < changed; ++i) std::swap(places[i], places[i + random() % (places.size() - i)]);
      const std::size_t shift = random() % run_bytes / 8 * 8;
      for (std::size_t i = 0; i < changed; ++i) {
        if (!runs) data[places[i]] ^= change_bits;
        for (std::size_t j = 0; runs && j < run_bytes; ++j) {
          data[(places[i] * run_bytes + shift + j) % page_bytes] ^= change_bits;
        }
      }
    }
  }

  template <class System>
  double store_us(const System& system, std::uint32_t operations) {
    const auto start = monotonic_ns();
    for (std::uint32_t i = 0; i < operations; ++i) {
      const auto data = data_order_.next();
      system.store(target_order_.next().data(), data.data(), twin_order_.next().data());
    }
    return static_cast<double>(monotonic_ns() - start) / 1000 / operations;
  }

  /// Stores every page once more. Returns the number of wrong bytes in targets.
  template <class System>
  std::size_t wrong(const System& system) {
    for (std::size_t page = 0; page < count_; ++page) {
      const std::size_t at = page * page_bytes;
      system.store(&targets_.bytes()[at], &data_.bytes()[at], &twins_.bytes()[at]);
    }
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count_ * page_bytes; ++i) {
      const std::byte data = data_.bytes()[i];
      wrong += targets_.bytes()[i] != (data == twins_.bytes()[i] ? untouched : data) ? 1 : 0;
    }
    return wrong;
  }

  /// Returns the bytes that would travel per page, for the first pages.
  [[nodiscard]] std::vector<double> travelling() const {
    std::vector<double> of_pages(warm_pages);
    for (std::size_t page = 0; page < warm_pages; ++page) {
      const std::size_t at = page * page_bytes;
      tonari::window::for_each_run(&data_.bytes()[at], &twins_.bytes()[at], page_bytes,
                                   [&](std::size_t, std::size_t length) {
                                     of_pages[page] += static_cast<double>(length + run_head_bytes);
                                     return true;
                                   });
    }
    return of_pages;
  }

 private:
  static constexpr std::byte change_bits{0x5a};

  /// Fills the twins with random bytes. Neither a byte nor its changed value is `untouched`.
  void fill_twins(std::mt19937_64& random) {
    for (std::byte& byte : twins_.bytes()) {
      byte = static_cast<std::byte>(random());
      if (byte == untouched || byte == change_bits) byte = std::byte{1};
    }
  }

  std::size_t count_;
  Memory data_;
  Memory twins_;
  Memory targets_;
  Buffers data_order_{data_.bytes(), page_bytes, true};
  Buffers twin_order_{twins_.bytes(), page_bytes, true};
  Buffers target_order_{targets_.bytes(), page_bytes, true};
};

template <class System>
std::vector<double> rates(Pages& pages, const System& system, double budget_us) {
  const auto fitting = fit_batches(batch_us, budget_us, [&](std::uint32_t operations) {
    return std::min(pages.store_us(system, operations), pages.store_us(system, operations));
  });
  std::vector<double> samples;
  for (std::uint64_t batch = 0; batch < fitting.batches; ++batch) {
    samples.push_back(page_bytes / pages.store_us(system, fitting.operations) / 1000);
  }
  return samples;
}

template <class System>
void run(const System& system, const Options& options, Output& output, bool tells_bytes) {
  const auto budget_us = options.number("budget-us", 2000);
  for (const auto& name : options.list("cases", "scattered,runs")) {
    Pages pages(name.ends_with("-cold") ? cold_pool_bytes() : 0);
    for (const auto percent : options.sizes("changed", "0,10,100")) {
      pages.change(static_cast<unsigned>(percent), name.starts_with("runs"));
      const auto report = [&](const char* metric, const char* unit, const std::vector<double>& samples) {
        output.samples({name, metric, unit, "% changed"}, static_cast<double>(percent), samples);
      };
      report("rate", "GB/s", rates(pages, system, budget_us));
      if (tells_bytes) report("bytes", "B", pages.travelling());
      output.check({name, "wrong", "bytes", "% changed"}, static_cast<double>(percent),
                   static_cast<double>(pages.wrong(system)), 1);
    }
  }
}

/// Returns the code of a level.
inline const tonari::window::DiffCode& code_of(const std::string& level) {
  for (const auto known : tonari::window::diff_levels) {
    const auto* const code = tonari::window::diff_code(known);
    if (level == to_string(known) && code != nullptr) return *code;
  }
  throw std::invalid_argument("diff: this processor has no level " + level);
}

}  // namespace tonari::bench::diff
