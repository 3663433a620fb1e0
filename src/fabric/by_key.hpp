#pragma once

#include <tonari/status.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

struct ucp_mem;  // types of UCX, declared here so that only ucx/ includes its headers
struct ucp_rkey;

// Memory that other hosts read and write by RDMA, with a key and without help from its owner.
namespace tonari::fabric {

/// Memory of this rank that a key opens. It is pinned as long as it is exposed.
struct Exposed {
  ucp_mem* memory = nullptr;   ///< Null: it could not be exposed.
  std::vector<std::byte> key;  ///< To be sent to the ranks that may read and write it.
};

/// A key of another rank.
using RemoteKey = ucp_rkey;

/// An RDMA copy or a flush that is under way. `status` is valid once it is done.
struct Landing {
  std::atomic<bool> done{true};  // release by the poller: the status and the copied bytes
  Status status = Status::ok;
};

}  // namespace tonari::fabric
