#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "share/coherence/heads.hpp"
#include "share/guarded/replica_table.hpp"
#include "share/shared_memory.hpp"
#include "share/sync/flag_home.hpp"

#include <tonari/message.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

namespace tonari::share {

/// One rank's runtime of shared memory and guarded data: the protocol that receives their heads.
///
/// Threads: any.
class ShareRuntime final : public fabric::ProtocolHandler {
 public:
  explicit ShareRuntime(fabric::Engine& engine)
      : engine_(engine),
        send_queue_(engine),
        requests_(engine),
        flags_(engine, send_queue_),
        replicas_(engine, send_queue_),
        waiting_count_(engine.handlers()) {}
  ~ShareRuntime() override {  // before the members are destroyed: both wait, and receive heads meanwhile
    replicas_.end();
    flags_.close();
  }
  /// Returns the session's runtime, made on first use.
  static ShareRuntime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] fabric::SendQueue& send_queue() noexcept { return send_queue_; }
  [[nodiscard]] fabric::Requests& requests() noexcept { return requests_; }
  /// Returns the communicator of all ranks for this layer's collectives. The first call makes it, and is collective.
  /// Throws SetupError.
  Communicator& ranks(Job& job);
  /// Returns this rank's shared memory. The first call makes it, and is collective. Throws SetupError.
  SharedMemory& sharing(Job& job);
  /// Returns this rank's shared memory, or null if it was not made yet.
  [[nodiscard]] SharedMemory* sharing() const noexcept { return shared_.load(std::memory_order_acquire); }
  [[nodiscard]] FlagHome& flags() noexcept { return flags_; }
  [[nodiscard]] ReplicaTable& replicas() noexcept { return replicas_; }

  // fabric::ProtocolHandler
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override;
  [[nodiscard]] bool held_back() const noexcept override {
    return !send_queue_.is_empty() || replicas_.held_back() || !waiting_count_.is_zero();
  }
  void idle() noexcept override {}
  void died(int rank) noexcept override {
    left(rank);
    replicas_.died(rank);
  }
  void left(int rank) noexcept override {
    requests_.end_requests_to(rank);
    flags_.gone(rank);
  }

 private:
  Communicator& ranks_of(Job& job);  // with sharing_mutex_ held
  void receive(const fabric::Head& head) noexcept;
  bool serve(const fabric::Head& head) noexcept;
  void refuse(int peer, Kind kind, const Words& request) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue send_queue_;
  fabric::Requests requests_;
  FlagHome flags_;
  ReplicaTable replicas_;
  std::deque<fabric::Head> waiting_;  // requests whose replies had no room; used by the holder of the progress lock
  fabric::HeldBack waiting_count_;
  std::mutex sharing_mutex_;  // protects ranks_ and shared_memory_
  std::optional<Communicator> ranks_;
  std::unique_ptr<SharedMemory> shared_memory_;
  std::atomic<SharedMemory*> shared_{nullptr};  // release: the object is complete
};

}  // namespace tonari::share
