#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tonari {

/// Owns a range of mapped memory. Forked children do not inherit it.
class Mapping {
 public:
  Mapping() noexcept = default;
  /// Maps `bytes` of a file from `offset` on: readable, writable and shared. Throws SetupError that names `what`.
  Mapping(int file, std::size_t bytes, const char* what, std::uint64_t offset = 0);
  /// Maps `bytes` of zeros, private to this process. Throws SetupError.
  static Mapping of_zeros(std::size_t bytes, const char* what);
  /// The same for a sparse table, of which few pages will be touched. It may be larger than the memory of the machine.
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
