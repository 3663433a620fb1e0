#pragma once

#include "fabric/ucx/keepalive.hpp"
#include "fabric/ucx/library.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tonari::fabric::ucx {

/// A context and a worker of UCX's, for active messages, and for the memory of peers where the network is RDMA.
///
/// Threads: one at a time.
class Worker {
 public:
  /// `network`: tcp, rc, ud or any. `devices`: as UCX_NET_DEVICES; empty for all. Throws SetupError.
  Worker(const std::string& network, const std::string& devices, int peers);
  Worker(Worker&&) = delete;  // C callbacks know its address
  ~Worker();

  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker_h handle() const noexcept { return worker_; }
  /// The network card reads and writes the memory of peers. Else UCX would have them do so, wherever a packet says.
  [[nodiscard]] bool reaches_memory() const noexcept { return reaches_memory_; }
  [[nodiscard]] std::vector<std::byte> address() const;  ///< Throws SetupError.
  [[nodiscard]] int event_descriptor() const;            ///< Throws SetupError.

  /// Ends connections to hosts that are silent. To be called often, while nobody makes progress.
  void check_keepalive() noexcept;

 private:
  void make_worker();

  const Library& ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool reaches_memory_;
  std::optional<Keepalive::Times> keepalive_times_;
  std::optional<Keepalive> keepalive_;
};

}  // namespace tonari::fabric::ucx
