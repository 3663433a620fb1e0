#pragma once

#include "own_faults.hpp"
#include "random.hpp"

#include "base/mapping.hpp"
#include "pager/own_space.hpp"
#include "pager/pager.hpp"
#include "pager/source.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace tonari::test {

/// Skips its tests where the kernel refuses userfaultfd, or lacks a feature of it that the pager needs.
struct NeedsPaging : testing::Test {
  void SetUp() override {
    try {
      const pager::Userfaultfd needed;
    } catch (const SetupError& failure) {
      GTEST_SKIP() << failure.what();
    }
  }
};

/// A source in ordinary memory. A test can make it fail.
class MemorySource : public pager::Source {
 public:
  explicit MemorySource(std::size_t size, bool lets_look = true)
      : memory_(Mapping::of_sparse_zeros(size, "a test's source")), lets_look_(lets_look) {}

  Status fetch(std::uint64_t place, std::span<std::byte> into) noexcept override {
    if (gone) return Status::peer_gone;
    const std::lock_guard guard(mutex_);
    std::memcpy(into.data(), bytes().data() + place, into.size());
    return Status::ok;
  }
  Status store(std::uint64_t place, std::span<const std::byte> from) noexcept override {
    if (gone) return Status::peer_gone;
    if (full) return Status::no_memory;
    const std::lock_guard guard(mutex_);
    std::memmove(bytes().data() + place, from.data(), from.size());  // the bytes may be in place already: see room()
    stored += from.size();
    return Status::ok;
  }
  Status discard(std::uint64_t place, std::uint64_t length) noexcept override {
    if (gone) return Status::peer_gone;
    const std::lock_guard guard(mutex_);
    std::memset(bytes().data() + place, 0xdd, length);  // the pager must not ask for it again
    return Status::ok;
  }
  std::span<const std::byte> look(std::uint64_t place, std::uint64_t length) noexcept override {
    if (!lets_look_ || gone) return {};
    const std::lock_guard guard(mutex_);  // orders the writes of spoil() before this
    return bytes().subspan(place, length);
  }
  std::span<std::byte> room(std::uint64_t place, std::uint64_t length) noexcept override {
    return !lets_look_ || gone || full ? std::span<std::byte>{} : bytes().subspan(place, length);
  }
  /// Corrupts a byte.
  void spoil(std::size_t place) {
    const std::lock_guard guard(mutex_);
    bytes()[place] ^= std::byte{1};
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory_.bytes(); }

  std::atomic<bool> gone{false};
  std::atomic<bool> full{false};
  std::atomic<std::size_t> stored{0};

 private:
  Mapping memory_;
  bool lets_look_;
  std::mutex mutex_;  // shows ThreadSanitizer the order that the kernel enforces
};

/// Memory for a region, which begins `offset` bytes after a huge page boundary.
class RegionMemory {
 public:
  explicit RegionMemory(std::size_t size, std::size_t offset = 0)
      : memory_(Mapping::of_sparse_zeros(size + offset + pager::block_bytes, "a test's region")) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.bytes().data());
    const std::size_t skip = (pager::block_bytes - address % pager::block_bytes) % pager::block_bytes + offset;
    bytes_ = memory_.bytes().subspan(skip, size);
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  [[nodiscard]] pager::Address start() const noexcept { return reinterpret_cast<pager::Address>(bytes_.data()); }

 private:
  Mapping memory_;
  std::span<std::byte> bytes_;
};

/// How pages leave, and which threads serve faults.
enum class Faults {
  by_pager,           ///< Pages are moved out.
  by_pager_in_place,  ///< Scattered pages are protected and dropped.
  by_threads,         ///< The same; threads serve the faults that they meet.
};

inline std::unique_ptr<pager::OwnSpace> space_for(Faults faults, std::size_t limit, std::span<const std::byte> stored) {
  const std::size_t buffers = pager::buffers_for(limit);
  if (faults == Faults::by_threads) return std::make_unique<SelfServingSpace>(buffers, stored);
  return std::make_unique<pager::OwnSpace>(
      buffers, pager::Userfaultfd::Options{.protects = faults == Faults::by_pager_in_place});
}

/// A pager of this process with one region.
struct Paged {
  Paged(std::size_t size, std::size_t limit, pager::Options options = {}, bool lets_look = true,
        pager::Contents contents = pager::Contents::zeros, std::size_t offset = 0, Faults faults = Faults::by_pager)
      : source(size, lets_look),
        memory(size, offset),
        own_space(space_for(faults, limit, source.bytes())),
        space(*own_space),
        pager(space, [&] {
          options.limit_bytes = limit;
          if (!options.on_failure) options.on_failure = [this](const pager::Failure& each) { note(each); };
          return options;
        }()) {
    pager.add(memory.start(), size, source, contents);
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return memory.bytes(); }
  [[nodiscard]] std::vector<pager::Failure> failures() {
    const std::lock_guard guard(mutex);
    return noted;
  }

  MemorySource source;
  RegionMemory memory;
  std::unique_ptr<pager::OwnSpace> own_space;
  pager::OwnSpace& space;
  std::mutex mutex;
  std::vector<pager::Failure> noted;
  pager::Pager pager;

 private:
  void note(const pager::Failure& each) {
    const std::lock_guard guard(mutex);
    noted.push_back(each);
  }
};

/// Fills each page with a pattern of its own.
inline void write_all(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t at = 0; at < bytes.size(); at += pager::page_bytes) {
    const auto page = pattern(pager::page_bytes, seed + at);
    std::memcpy(bytes.data() + at, page.data(), pager::page_bytes);
  }
}

/// Returns how many pages differ from the pattern that write_all() wrote.
inline std::size_t wrong_pages(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < bytes.size(); at += pager::page_bytes) {
    const auto page = pattern(pager::page_bytes, seed + at);
    wrong += std::memcmp(bytes.data() + at, page.data(), pager::page_bytes) != 0 ? 1 : 0;
  }
  return wrong;
}

/// Waits until `condition()` is true, which may take long on a busy machine. Returns false after a minute.
template <class Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace tonari::test
