#pragma once

#include "fabric/engine.hpp"
#include "share/coherence/requests.hpp"
#include "share/sync/flag_home.hpp"
#include "share/guarded/replica_table.hpp"
#include "share/shared_memory.hpp"
#include "fabric/send_queue.hpp"

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
class Runtime final : public fabric::Layer {
 public:
  explicit Runtime(fabric::Engine& engine)
      : engine_(engine), outbox_(engine), asking_(engine), flags_(engine, outbox_), guards_(engine, outbox_) {}
  ~Runtime() override {  // while the rest is there: who waits in it receives heads
    guards_.end();
    flags_.close();
  }
  /// The session's, made on first use.
  static Runtime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] window::Outbox& outbox() noexcept { return outbox_; }
  [[nodiscard]] Asking& asking() noexcept { return asking_; }
  /// Of all ranks, for what is collective in this layer; made on first use: collective then. Throws SetupError.
  Communicator& ranks(Job& job);
  /// Shared memory of this rank, made on first use: collective then. Throws SetupError.
  Sharing& sharing(Job& job);
  /// If it has been made.
  [[nodiscard]] Sharing* sharing() const noexcept { return shared_.load(std::memory_order_acquire); }
  [[nodiscard]] FlagHome& flags() noexcept { return flags_; }
  [[nodiscard]] Guards& guards() noexcept { return guards_; }

  // fabric::Layer
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override;
  [[nodiscard]] bool held_back() const noexcept override {
    return !outbox_.is_empty() || guards_.held_back() || waiting_count_.load(std::memory_order_relaxed) != 0;
  }
  void idle() noexcept override {}
  void died(int rank) noexcept override {
    left(rank);
    guards_.died(rank);
  }
  void left(int rank) noexcept override {
    asking_.gone(rank);
    flags_.gone(rank);
  }

 private:
  Communicator& ranks_of(Job& job);  // with sharing_mutex_ held
  void receive(const fabric::Head& head) noexcept;
  bool serve(const fabric::Head& head) noexcept;
  void refuse(int peer, fabric::Kind kind, const Words& request) noexcept;

  fabric::Engine& engine_;
  window::Outbox outbox_;
  Asking asking_;
  FlagHome flags_;
  Guards guards_;
  std::deque<fabric::Head> waiting_;           // by the baton's holder: requests to which no reply had room
  std::atomic<std::size_t> waiting_count_{0};  // relaxed: who sees none, looks again
  std::mutex sharing_mutex_;                   // of the next two
  std::optional<Communicator> ranks_;
  std::unique_ptr<Sharing> sharing_;
  std::atomic<Sharing*> shared_{nullptr};  // release: whole
};

}  // namespace tonari::share
