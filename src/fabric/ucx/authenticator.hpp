#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::fabric::ucx {

/// What a rank puts beside each of its heads to one peer, and only a member of the job can know: a keyed hash of the
/// two ranks, by the job's secret. A peer of another job, or one that mistakes its rank or ours, is told by it.
class Authenticator {
 public:
  static constexpr std::size_t secret_bytes_min = 16;

  /// Throws SetupError when `secret` is shorter than secret_bytes_min.
  explicit Authenticator(std::span<const std::byte> secret);
  Authenticator(Authenticator&&) = delete;
  ~Authenticator();  // leaves no copy of the key

  [[nodiscard]] std::uint64_t of(int sender, int receiver) const noexcept;

 private:
  unsigned char key_[16];
};

}  // namespace tonari::fabric::ucx
