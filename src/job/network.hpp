#pragma once

#include "job/session.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// The part of the fabric that joining needs. The fabric is a layer above, so it is declared here and defined in
// fabric/network.cpp.
namespace tonari::job {

/// How the network lost the connection to a rank.
struct Loss {
  std::string_view reason;  ///< The network's own message.
  bool was_reached;  ///< False: no connection ever existed, so the rank may be alive in a network that this host cannot
                     ///< reach.
};

/// A rank's connections to ranks of other hosts.
class Network {
 public:
  virtual ~Network() = default;
  /// Address of this rank, for the other ranks.
  [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;
  /// Gives the address of a rank, before anything is sent to it. The address must come from a trusted source.
  virtual void introduce(int rank, std::vector<std::byte> address) = 0;
  /// Returns how this network lost a rank; empty if it has not lost the rank itself but another source reported the
  /// death. Any thread may call it.
  [[nodiscard]] virtual std::optional<Loss> loss(int rank) const noexcept = 0;
};

/// Throws SetupError.
std::unique_ptr<Network> make_network(const Membership& member, const Settings& settings);

/// Attaches the fabric to the session, so that the rank handles everything that arrives by the network from now on.
void attach_fabric(Session& session);

}  // namespace tonari::job
