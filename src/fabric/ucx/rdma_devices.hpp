#pragma once

#include <filesystem>
#include <string>

namespace tonari::fabric::ucx {

/// Whether UCX would have a network card read and write the memory of peers, with these transports (UCX_TLS) and
/// devices (UCX_NET_DEVICES). That takes a card of this machine with a link, and a transport with RDMA: rc, dc, ib or
/// all.
[[nodiscard]] bool finds_rdma_card(const std::string& transports, const std::string& devices,
                                   const std::filesystem::path& cards = "/sys/class/infiniband");

}  // namespace tonari::fabric::ucx
