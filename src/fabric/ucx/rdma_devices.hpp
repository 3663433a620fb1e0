#pragma once

#include <filesystem>
#include <string>

namespace tonari::fabric::ucx {

/// Whether UCX, told to use these transports (UCX_TLS) and devices (UCX_NET_DEVICES), would have a card read and write
/// the memory of peers: one of this machine's that has a link, over a transport that can. Who names transports has to
/// name such a one: rc, dc or ib.
[[nodiscard]] bool finds_rdma_card(const std::string& transports, const std::string& devices,
                                   const std::filesystem::path& cards = "/sys/class/infiniband");

}  // namespace tonari::fabric::ucx
