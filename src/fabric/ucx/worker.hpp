#pragma once

#include "fabric/ucx/keepalive.hpp"
#include "fabric/ucx/library.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tonari::fabric::ucx {

/// A context and a worker of UCX, for active messages and, if the network has RDMA, for the memory of peers.
///
/// Threads: one at a time.
class Worker {
 public:
  /// `network`: tcp, rc, ud or any. `devices`: as UCX_NET_DEVICES; empty for all. Throws SetupError.
  Worker(const std::string& network, const std::string& devices, int peers);
  Worker(Worker&&) = delete;  // UCX's callbacks have its address
  ~Worker();

  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker_h handle() const noexcept { return worker_; }
  /// Whether the network card reads and writes the memory of peers. Without such a card UCX would have the peer's
  /// processor do it, at any address that a packet names, so it is not used.
  [[nodiscard]] bool reaches_memory() const noexcept { return reaches_memory_; }
  [[nodiscard]] std::vector<std::byte> address() const;  ///< Throws SetupError.
  [[nodiscard]] int event_descriptor() const;            ///< Throws SetupError.

  /// Closes connections to silent hosts. Call it often, while no thread makes progress.
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
