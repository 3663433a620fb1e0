#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "window/create/rendezvous.hpp"
#include "window/descriptor_queue.hpp"
#include "window/remote/origin.hpp"
#include "window/remote/rdma_keys.hpp"
#include "window/remote/target.hpp"
#include "window/state/pins.hpp"
#include "window/state/window_state.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tonari::window {

/// The windows of one rank: makes them, and serves other ranks' requests.
///
/// Threads: any.
class WindowRuntime final : public fabric::ProtocolHandler {
 public:
  explicit WindowRuntime(fabric::Engine& engine)
      : engine_(engine),
        send_queue_(engine),
        origin_(engine),
        target_(engine, send_queue_),
        lock_homes_(engine, send_queue_),
        given_keys_(*this),
        gone_(static_cast<std::size_t>(engine.session().size())),
        worker_(engine) {}
  /// Returns the session's windows; makes them at the first call.
  static WindowRuntime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Pins& pins() noexcept { return pins_; }
  [[nodiscard]] fabric::SendQueue& send_queue() noexcept { return send_queue_; }
  [[nodiscard]] Origin& origin() noexcept { return origin_; }
  [[nodiscard]] LockHomes& lock_homes() noexcept { return lock_homes_; }
  [[nodiscard]] GivenKeys& given_keys() noexcept { return given_keys_; }
  /// Returns true if a rank has died or left, and its heads that had arrived by then are handled. Late heads of a dead
  /// rank may follow (Engine::drain).
  [[nodiscard]] bool has_gone(int rank) const noexcept {
    return gone_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  [[nodiscard]] Worker& worker() noexcept { return worker_; }

  /// Collective over the group. Throws SetupError.
  std::shared_ptr<WindowState> make(const Group& group, const Offer& offer);
  /// Makes a local window of this rank. Throws SetupError.
  std::shared_ptr<WindowState> make_alone(const Offer& offer);
  /// Attaches to another rank's local window. Throws SetupError.
  std::shared_ptr<WindowState> reach(GlobalAddress address);
  /// Removes the window: no request finds it from now on. Waits for requests that use it.
  void remove(const WindowState& state) noexcept;

  // fabric::ProtocolHandler
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override;
  [[nodiscard]] bool held_back() const noexcept override { return !send_queue_.is_empty() || lock_homes_.held_back(); }
  void idle() noexcept override {}
  void died(int rank) noexcept override;
  void left(int rank) noexcept override;
  void run_deferred_work() noexcept override;

 private:
  /// Memory in the host's pool.
  struct LaidOut {
    std::uint32_t granule = 0;
    std::uint64_t bytes = 0;
  };
  /// A window that is being made: by which ranks, and which of the group's windows it is.
  struct Making {
    const Group& group;
    std::uint64_t name = 0;
    std::uint32_t sequence = 0;
    std::vector<int> here{};  // ranks of this host
    std::vector<int> remote{};
  };
  using RemoteParts = std::vector<std::pair<int, RemotePart>>;

  void send(int peer, const fabric::Head& head);
  [[nodiscard]] Making begin(const Group& group);
  void join(const Making& making, const Offer& offer, bool refused);
  LaidOut make_here(const Making& making, const Offer& offer, const std::string& wrong);
  LaidOut make_for_all(const Making& making);
  LaidOut lay_out(const Group& group, std::span<const Gift> gifts, bool alone);
  LaidOut wait_for_first(const Making& making);
  [[nodiscard]] Place place_of(const LaidOut& memory, std::uint32_t number) const;
  void let_go(const LaidOut& memory) noexcept;
  void wait_for_members(const Making& making, Header& header);
  void publish(const std::shared_ptr<WindowState>& state);
  [[nodiscard]] bool is_known(std::uint32_t window) noexcept;
  std::shared_ptr<WindowState> reach_anew(GlobalAddress address);
  std::shared_ptr<WindowState> reach_here(GlobalAddress address);
  [[nodiscard]] bool is_gone(int rank) const noexcept;
  [[nodiscard]] int first_gone(const Making& making) const noexcept;
  void throw_if_gone(const Making& making) const;

  // create/window_runtime_create_remote.cpp
  void tell_remote(const Making& making, std::uint32_t number, const Offer& offer, std::uint32_t flags);
  std::uint32_t agree(const Making& making, std::uint32_t number, const Offer& offer, RemoteParts& parts);
  void tell_ready(const Making& making, std::uint32_t flags);
  void wait_for_remote(const Making& making);
  [[nodiscard]] std::vector<fabric::Head> wait_for_all(const Making& making, Kind kind);
  [[nodiscard]] std::uint32_t number_of_granule(std::uint32_t granule) const;
  [[nodiscard]] int domain_of(std::uint32_t number) const noexcept;
  std::shared_ptr<WindowState> reach_remote(GlobalAddress address);

  void receive(const fabric::Head& head) noexcept;
  void receive_request(const fabric::Head& head) noexcept;
  void receive_lock(const fabric::Head& head) noexcept;
  WindowState* use(std::uint32_t window) noexcept;
  void leave(std::uint32_t window) noexcept;
  template <class Visit>
  void with(std::uint32_t window, Visit visit) noexcept {
    WindowState* const state = use(window);
    if (state == nullptr) return;
    visit(*state);
    leave(window);
  }

  fabric::Engine& engine_;
  fabric::SendQueue send_queue_;
  Rendezvous rendezvous_;
  Pins pins_;
  Origin origin_;
  Target target_;
  LockHomes lock_homes_;
  GivenKeys given_keys_;
  std::vector<std::atomic<bool>> gone_;  // by rank

  struct Known {
    WindowState* state;
    std::uint32_t users;
  };
  SpinLock known_lock_;  // guards known_
  std::map<std::uint32_t, Known> known_;

  std::mutex reached_mutex_;  // guards reached_
  std::map<std::uint32_t, std::weak_ptr<WindowState>> reached_;

  Worker worker_;  // last member: it ends first
};

}  // namespace tonari::window
