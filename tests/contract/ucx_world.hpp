#pragma once

#include "fabric/ordered.hpp"
#include "fabric/ucx/wire.hpp"

#include <tonari/status.hpp>

#include <sched.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// The network as a World of the contract. Each rank has its own UCX context and worker. They use TCP on the loopback
// device, or the network of TONARI_TEST_NETWORK and the devices of TONARI_TEST_DEVICES, one for each rank in turn.
namespace tonari::fabric {

inline constexpr std::array<std::byte, 32> ucx_secret{std::byte{0x5e}, std::byte{0xc2}, std::byte{0xe7}};
inline constexpr Ordered<ucx::Wire>::Windows ucx_windows{.requests = 32, .replies = 64};
inline constexpr std::size_t credits_max = 5;  // credits of one peer under way; see ordered.hpp

inline std::string ucx_network() {
  const char* const network = std::getenv("TONARI_TEST_NETWORK");
  return network != nullptr ? network : "tcp";
}
inline std::string ucx_device(int rank) {
  const char* const devices = std::getenv("TONARI_TEST_DEVICES");
  std::istringstream list(devices != nullptr ? devices : "lo");
  std::vector<std::string> all;
  for (std::string each; std::getline(list, each, ',');) all.push_back(each);
  return all.at(static_cast<std::size_t>(rank) % all.size());
}

inline ucx::Wire::Settings ucx_settings(int ranks, int self) {
  return {.network = ucx_network(),
          .devices = ucx_device(self),
          .secret = ucx_secret,
          .ranks = ranks,
          .self = self,
          .requests = ucx_windows.requests,
          .replies = ucx_windows.replies + credits_max};
}

/// Returns why this machine has no network for the tests; empty if it has one.
inline const std::string& no_ucx() {
  static const std::string why = [] {
    try {
      const ucx::Wire wire(ucx_settings(1, 0));
      return std::string{};
    } catch (const SetupError& error) {
      return std::string(error.what());
    }
  }();
  return why;
}

inline std::vector<std::byte> address_of(const ucx::Wire& wire) {
  return {wire.address().begin(), wire.address().end()};
}

/// Connects each wire with each other wire by one head in both directions. Throws when that takes too long.
template <class Wires>
void greet(Wires& wires) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int awaited = 0;
  for (int from = 0; from < wires.size(); ++from) {
    for (int to = 0; to < wires.size(); ++to) {
      if (to == from) continue;
      Head head{};
      head.source = static_cast<std::uint32_t>(from);
      if (wires[from].send(to, head, Lane::request) == Status::ok) ++awaited;
    }
  }
  if (awaited != wires.size() * (wires.size() - 1)) throw std::runtime_error("a first head was not accepted");
  while (awaited != 0) {
    for (int rank = 0; rank < wires.size(); ++rank) wires[rank].poll(16, [&](const Head&) noexcept { --awaited; });
    if (std::chrono::steady_clock::now() > until)
      throw std::runtime_error("the first heads of the ranks did not arrive in time");
  }
}

/// Makes wires that know each other's addresses but are not connected yet.
struct UcxWires {
  explicit UcxWires(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<ucx::Wire>(ucx_settings(ranks, rank)));
    for (const auto& wire : all) {
      for (int peer = 0; peer < ranks; ++peer) wire->introduce(peer, address_of((*this)[peer]));
    }
  }
  ucx::Wire& operator[](int rank) { return *all[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(all.size()); }

  std::vector<std::unique_ptr<ucx::Wire>> all;
};

class UcxWorld {
 public:
  using Wire = Ordered<ucx::Wire>;
  static constexpr std::size_t replies_reserved = 48;
  static constexpr std::size_t overtaken_max = 2 * ucx_windows.requests;  // each sender has its own connection

  static const std::string& why_not() { return no_ucx(); }

  UcxWorld(int ranks, std::uint64_t) : below_(ranks) {
    greet(below_);
    for (int rank = 0; rank < ranks; ++rank) {
      wires_.push_back(std::make_unique<Wire>(below_[rank], ranks, rank, ucx_windows));
    }
  }
  Wire& operator[](int rank) { return *wires_[static_cast<std::size_t>(rank)]; }

 private:
  UcxWires below_;
  std::vector<std::unique_ptr<Wire>> wires_;
};

}  // namespace tonari::fabric
