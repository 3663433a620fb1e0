#pragma once

#include <tonari/status.hpp>

#include <atomic>
#include <cstddef>
#include <vector>

struct ucp_mem;  // UCX's, so that only its folder needs its headers
struct ucp_rkey;

// Memory that other hosts read and write without its owner's help: by a key, where the network is RDMA.
namespace tonari::fabric {

/// Memory of this rank's that a key opens, pinned as long as it is exposed.
struct Exposed {
  ucp_mem* memory = nullptr;   ///< Null: it could not be.
  std::vector<std::byte> key;  ///< For whoever may read and write it.
};

/// A key of another rank's.
using RemoteKey = ucp_rkey;

/// A copy by key that is under way, or a flush. `status` counts once it is done.
struct Landing {
  std::atomic<bool> done{true};  // release by the poller: the status, and what was copied here
  Status status = Status::ok;
};

}  // namespace tonari::fabric
