#pragma once

#include <tonari/tonari.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace tonari::test {

/// The contents that a part should have, kept in ordinary memory.
class WindowModel {
 public:
  explicit WindowModel(std::size_t bytes) : bytes_(bytes) {}

  void write(std::size_t offset, std::span<const std::byte> from) {
    std::ranges::copy(from, bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  void write(std::size_t offset, std::span<const std::byte> from, std::span<const Region> regions) {
    for (const Region& each : regions) write(offset + each.offset, from.subspan(each.offset, each.bytes));
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

  void expect_at(Window& window, int rank) const {
    std::vector<std::byte> there(bytes_.size());
    ASSERT_EQ(window.pull(there, window.at(JobRank{rank})), Status::ok);
    ASSERT_TRUE(there == bytes_);
  }
  void expect_here(const Window& window) const { ASSERT_TRUE(std::ranges::equal(window.local(), bytes_)); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace tonari::test
