#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::fabric::ucx {

/// Computes the value that a rank sends with each of its heads to one peer: a hash of the two ranks, keyed by the job's
/// secret. Only members of the job can compute it. It exposes a peer of another job, and a wrong sender or receiver.
class Authenticator {
 public:
  static constexpr std::size_t secret_bytes_min = 16;

  /// Throws SetupError when `secret` is shorter than secret_bytes_min.
  explicit Authenticator(std::span<const std::byte> secret);
  Authenticator(Authenticator&&) = delete;
  ~Authenticator();  // erases the key

  [[nodiscard]] std::uint64_t of(int sender, int receiver) const noexcept;

 private:
  unsigned char key_[16];
};

}  // namespace tonari::fabric::ucx
