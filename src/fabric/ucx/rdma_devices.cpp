#include "fabric/ucx/rdma_devices.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace tonari::fabric::ucx {

namespace {

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream rest(list);
  for (std::string name; std::getline(rest, name, ',');) names.push_back(name);
  return names;
}

bool has_link(const std::filesystem::path& card) {
  std::error_code none;
  for (const auto& port : std::filesystem::directory_iterator(card / "ports", none)) {
    std::ifstream file(port.path() / "state");
    std::string state;  // as "4: ACTIVE"
    if (std::getline(file, state) && state.ends_with("ACTIVE")) return true;
  }
  return false;
}

bool can(std::string_view transport) noexcept {
  return transport == "all" || transport == "ib" || transport.starts_with("rc") || transport.starts_with("dc");
}

// "mlx5_0" and "mlx5_0:1" both name the card mlx5_0.
bool names(const std::string& device, const std::string& card) {
  return device == "all" || device == card || device.starts_with(card + ':');
}

}  // namespace

bool finds_rdma_card(const std::string& transports, const std::string& devices, const std::filesystem::path& cards) {
  if (!std::ranges::any_of(names_in(transports), can)) return false;
  const auto chosen = names_in(devices);
  std::error_code none;
  for (const auto& card : std::filesystem::directory_iterator(cards, none)) {
    const std::string name = card.path().filename();
    const auto names_it = [&](const std::string& device) { return names(device, name); };
    if (std::ranges::any_of(chosen, names_it) && has_link(card.path())) return true;
  }
  return false;
}

}  // namespace tonari::fabric::ucx
