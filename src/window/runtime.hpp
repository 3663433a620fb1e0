#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "window/access.hpp"
#include "window/joining.hpp"
#include "window/pins.hpp"
#include "window/served.hpp"
#include "window/work.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <span>

namespace tonari::window {

/// The windows of one rank: how they are made, and what other ranks ask of it.
///
/// Threads: any.
class Runtime final : public fabric::Layer {
 public:
  explicit Runtime(fabric::Engine& engine) noexcept
      : engine_(engine), client_(engine), server_(engine), worker_(engine) {}
  /// The session's windows, made on first use.
  static Runtime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  [[nodiscard]] Pins& pins() noexcept { return pins_; }
  [[nodiscard]] Client& client() noexcept { return client_; }
  [[nodiscard]] Worker& worker() noexcept { return worker_; }

  /// Collective over the group. Throws SetupError.
  std::shared_ptr<Access> make(const Group& group, const Offer& offer);
  /// Of this rank alone. Throws SetupError.
  std::shared_ptr<Access> make_alone(const Offer& offer);
  /// Another rank's alone. Throws SetupError.
  std::shared_ptr<Access> reach(GlobalAddress address);
  /// No request finds it from now on, and none uses it.
  void remove(const Access& access) noexcept;

  // fabric::Layer
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override {}
  [[nodiscard]] bool held_back() const noexcept override { return false; }
  void idle() noexcept override {}
  void died(int rank) noexcept override { client_.gone(rank); }
  void left(int rank) noexcept override { client_.gone(rank); }
  void run_errands() noexcept override;

 private:
  struct Made {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
  };
  void send(int peer, const fabric::Head& head);
  void give_up(const Group& group, std::uint32_t number);
  void join(const Group& group, std::uint64_t name, std::uint32_t sequence, const Offer& offer, bool refused);
  Made make_for_all(const Group& group, std::uint64_t name, std::uint32_t sequence);
  Made lay_out(const Group& group, std::span<const Gift> gifts, bool alone);
  Made wait_for_first(const Group& group, std::uint64_t name, std::uint32_t sequence);
  void wait_for_members(const Group& group, const Header& header);
  void publish(const std::shared_ptr<Access>& access);
  std::shared_ptr<Access> reach_anew(GlobalAddress address);

  fabric::Engine& engine_;
  Meetings meetings_;
  Pins pins_;
  Client client_;
  Server server_;

  struct Known {
    Access* access;
    std::uint32_t users;
  };
  SpinLock known_lock_;  // of the next
  std::map<std::uint32_t, Known> known_;

  std::mutex reached_mutex_;  // of the next
  std::map<std::uint32_t, std::weak_ptr<Access>> reached_;

  Worker worker_;  // the last: it ends first
};

}  // namespace tonari::window
