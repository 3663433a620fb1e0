#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tonari {

/// Owns a range of mapped memory. Not inherited by forked children.
class Mapping {
 public:
  Mapping() noexcept = default;
  /// Maps `bytes` of a file from `offset` on, readable, writable and shared. Throws SetupError that says what was
  /// mapped.
  Mapping(int file, std::size_t bytes, const char* what, std::uint64_t offset = 0);
  /// Maps `bytes` of zeros that are this process's alone. Throws SetupError.
  static Mapping of_zeros(std::size_t bytes, const char* what);
  /// The same for a table of which little may ever be touched: may be larger than memory.
  static Mapping of_sparse_zeros(std::size_t bytes, const char* what);
  Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  Mapping(void* start, std::size_t bytes, const char* what, const char* remedy);

  std::span<std::byte> bytes_;
};

}  // namespace tonari
