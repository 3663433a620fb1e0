#include "fabric/ucx/authenticator.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <array>

namespace tonari::fabric::ucx {

static_assert(crypto_shorthash_KEYBYTES == 16 && crypto_shorthash_BYTES == sizeof(std::uint64_t));

Authenticator::Authenticator(std::span<const std::byte> secret) {
  if (secret.size() < secret_bytes_min) {
    throw SetupError(
        fmt::format("the job's secret has {} bytes; the network needs {}", secret.size(), secret_bytes_min));
  }
  if (::sodium_init() < 0) throw SetupError("libsodium found no source of random numbers");
  // The key is derived from the secret, so that proofs seen on the network reveal nothing about the secret.
  constexpr std::array<unsigned char, 16> purpose{'t', 'o', 'n', 'a', 'r', 'i', ' ', 'h', 'e', 'a', 'd', 's', ' ', '1'};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(secret.data());
  ::crypto_generichash_state state;
  ::crypto_generichash_init(&state, bytes, std::min<std::size_t>(secret.size(), crypto_generichash_KEYBYTES_MAX),
                            sizeof key_);
  ::crypto_generichash_update(&state, purpose.data(), purpose.size());
  ::crypto_generichash_update(&state, bytes, secret.size());
  ::crypto_generichash_final(&state, key_, sizeof key_);
  ::sodium_memzero(&state, sizeof state);
}

Authenticator::~Authenticator() { ::sodium_memzero(key_, sizeof key_); }

std::uint64_t Authenticator::of(int sender, int receiver) const noexcept {
  const std::array<std::uint32_t, 2> ranks{static_cast<std::uint32_t>(sender), static_cast<std::uint32_t>(receiver)};
  std::uint64_t proof = 0;
  ::crypto_shorthash(reinterpret_cast<unsigned char*>(&proof), reinterpret_cast<const unsigned char*>(ranks.data()),
                     sizeof ranks, key_);
  return proof;
}

}  // namespace tonari::fabric::ucx
