#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "share/coherence/requests.hpp"
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

/// What one rank shares with the others: the layer that heads of shared memory are for.
///
/// Threads: any.
class ShareRuntime final : public fabric::Protocol {
 public:
  explicit ShareRuntime(fabric::Engine& engine)
      : engine_(engine),
        send_queue_(engine),
        requests_(engine),
        flags_(engine, send_queue_),
        replicas_(engine, send_queue_) {}
  ~ShareRuntime() override {  // while the rest is there: who waits in it receives heads
    replicas_.end();
    flags_.close();
  }
  /// The session's, made on first use.
  static ShareRuntime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] fabric::SendQueue& send_queue() noexcept { return send_queue_; }
  [[nodiscard]] Requests& requests() noexcept { return requests_; }
  /// Of all ranks, for what is collective in this layer; made on first use: collective then. Throws SetupError.
  Communicator& ranks(Job& job);
  /// Shared memory of this rank, made on first use: collective then. Throws SetupError.
  SharedMemory& sharing(Job& job);
  /// If it has been made.
  [[nodiscard]] SharedMemory* sharing() const noexcept { return shared_.load(std::memory_order_acquire); }
  [[nodiscard]] FlagHome& flags() noexcept { return flags_; }
  [[nodiscard]] ReplicaTable& guards() noexcept { return replicas_; }

  // fabric::Layer
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override;
  [[nodiscard]] bool held_back() const noexcept override {
    return !send_queue_.is_empty() || replicas_.held_back() || waiting_count_.load(std::memory_order_relaxed) != 0;
  }
  void idle() noexcept override {}
  void died(int rank) noexcept override {
    left(rank);
    replicas_.died(rank);
  }
  void left(int rank) noexcept override {
    requests_.gone(rank);
    flags_.gone(rank);
  }

 private:
  Communicator& ranks_of(Job& job);  // with sharing_mutex_ held
  void receive(const fabric::Head& head) noexcept;
  bool serve(const fabric::Head& head) noexcept;
  void refuse(int peer, fabric::Kind kind, const Words& request) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue send_queue_;
  Requests requests_;
  FlagHome flags_;
  ReplicaTable replicas_;
  std::deque<fabric::Head> waiting_;           // by the progress lock's holder: requests to which no reply had room
  std::atomic<std::size_t> waiting_count_{0};  // relaxed: who sees none, looks again
  std::mutex sharing_mutex_;                   // of the next two
  std::optional<Communicator> ranks_;
  std::unique_ptr<SharedMemory> shared_memory_;
  std::atomic<SharedMemory*> shared_{nullptr};  // release: whole
};

}  // namespace tonari::share
