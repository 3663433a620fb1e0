#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

namespace tonari::bench {

/// Distinct payloads of many messages in little memory: that of message i is the numbers from i on, so that payloads
/// overlap.
class NumberedPayloads {
 public:
  NumberedPayloads(std::size_t messages, std::size_t bytes)
      : bytes_(bytes), numbers_(messages + bytes / sizeof(Number) + 1) {
    std::iota(numbers_.begin(), numbers_.end(), Number{0});
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<const std::byte> of(std::size_t message) const noexcept {
    return std::as_bytes(std::span(numbers_)).subspan(message * sizeof(Number), bytes_);
  }
  /// Returns whether the first and the last number in `bytes` belong to the message. Fast enough for a timed loop.
  [[nodiscard]] bool is_like(std::span<const std::byte> bytes, std::size_t message) const noexcept {
    const std::size_t numbers = bytes_ / sizeof(Number);
    return numbers == 0 || (number(bytes, 0) == message && number(bytes, numbers - 1) == message + numbers - 1);
  }

 private:
  using Number = std::uint64_t;
  static Number number(std::span<const std::byte> bytes, std::size_t index) noexcept {
    Number value = 0;
    std::memcpy(&value, &bytes[index * sizeof value], sizeof value);
    return value;
  }

  std::size_t bytes_;
  std::vector<Number> numbers_;
};

}  // namespace tonari::bench
