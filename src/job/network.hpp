#pragma once

#include "job/session.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// What joining needs of the fabric, which stands above: declared here, defined there (fabric/network.cpp).
namespace tonari::job {

/// How the network lost a rank.
struct Loss {
  std::string_view reason;  ///< In the network's words.
  bool was_reached;         ///< Else that rank may well live, where this one's network does not lead.
};

/// A rank's way to ranks of other hosts.
class Network {
 public:
  virtual ~Network() = default;
  /// This rank's, for the others.
  [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;
  /// Before anything is sent there. The address must come by a way that can be trusted.
  virtual void introduce(int rank, std::vector<std::byte> address) = 0;
  /// Nothing for a rank that it has not lost itself: others have told of that one's death. Any thread.
  [[nodiscard]] virtual std::optional<Loss> loss(int rank) const noexcept = 0;
};

/// Throws SetupError.
std::unique_ptr<Network> make_network(const Membership& member, const Settings& settings);

/// Has the session's rank take part from now on: what comes by the network must be looked at.
void attach_fabric(Session& session);

}  // namespace tonari::job
