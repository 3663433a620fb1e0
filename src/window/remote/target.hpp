#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "window/remote/service.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace tonari::window {

class WindowState;

/// The target's side.
///
/// Threads: the holder of the progress lock calls receive(); it may call serve() if no program's memory is touched. Any
///          thread may call the rest, with no lock held.
class Target {
 public:
  Target(fabric::Engine& engine, fabric::SendQueue& send_queue) noexcept : engine_(engine), send_queue_(send_queue) {}

  void receive(const fabric::Head& request) noexcept;
  /// Takes the next request. Returns false if there is none.
  bool next(fabric::Head& request) noexcept;
  /// Serves a request and replies. `state`: the window that it names, or nullptr. Returns false if there is no room
  /// for the data of the reply: try again later.
  bool serve(WindowState* state, const fabric::Head& request) noexcept;

 private:
  struct Answer;
  class Named;
  Status perform(const ServiceRequest& request, int peer, std::byte* there, ServiceReply& reply) const noexcept;
  Status copy(const ServiceRequest& request, int peer, std::byte* there) const noexcept;
  Status perform_near(const WindowState& state, const ServiceRequest& request, int peer, Answer& answer) const noexcept;
  Status perform_remote(WindowState& state, const ServiceRequest& request, int peer, std::span<const std::byte> tail,
                        Answer& answer) noexcept;
  Status take(WindowState& state, const ServiceRequest& request, int peer, const Named& named) noexcept;
  Status give(const WindowState& state, int peer, const Named& named, Answer& answer) noexcept;
  Status give_key(WindowState& state, int peer, Answer& answer) noexcept;
  void reply(const fabric::Head& request, const Answer& answer) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  SpinLock lock_;  // guards requests_
  std::deque<fabric::Head> requests_;
};

}  // namespace tonari::window
