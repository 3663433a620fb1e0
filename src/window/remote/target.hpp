#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "window/local/atomic_words.hpp"
#include "window/local/checked_copy.hpp"
#include "window/remote/heads.hpp"
#include "window/state/layout.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace tonari::window {

class WindowState;

// Accesses that only the owner of the memory can make: if one program may not copy from another, atomic operations on a
// program's own memory, and all accesses between hosts. The origin sends a request and waits for the reply. Within a
// host, the data pass through the origin's bulk memory; between hosts they travel with the heads. The target checks
// everything again. It touches a program's memory without any lock, because that may be far memory and take long to
// arrive.
enum class Service : std::uint8_t { pull = 1, push = 2, atomic = 3, reach = 4, relay = 5, key = 6 };

// Copies up to this size travel in the heads themselves.
inline constexpr std::size_t carried_bytes_max = 24;
using Carried = std::array<std::uint64_t, carried_bytes_max / 8>;
/// The same for a push to another host, whose last word is taken by Beside.
inline constexpr std::size_t remote_carried_bytes_max = 16;

struct ServiceRequest {
  // Push: its bytes, if they are few. Atomic operation: operand, expected. Otherwise a fabric::BulkPlace. Between
  // hosts: size and place of the tail, if there is one, and Beside.
  Carried words;
  std::uint64_t offset;  // in the target's part
  std::uint32_t bytes;   // size of the whole copy
  std::uint32_t ticket;  // reserves room for the reply
  std::uint32_t generation;
  Service service;
  detail::AtomicOperation operation;
  std::uint8_t carried;  // 1: a copy whose bytes are in the heads
  std::uint8_t reserved;
};
struct ServiceReply {
  // Pull: its bytes, if they are few; otherwise size and place of the tail. Atomic operation: the old value.
  Carried words;
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint32_t status;
  std::uint32_t reserved;
};
static_assert(sizeof(ServiceRequest) == fabric::inline_bytes_max && sizeof(ServiceReply) == 40);
// A tail is named by the first two words.
static_assert(fabric::begins_with_tail(offsetof(ServiceRequest, words), offsetof(ServiceRequest, words) + 8));
static_assert(fabric::begins_with_tail(offsetof(ServiceReply, words), offsetof(ServiceReply, words) + 8));

/// The last word of a request from another host.
struct Beside {
  /// Number of stretches that the tail begins with; 0: one stretch, at the request's offset. Relay: number of targets
  /// (multicast.hpp).
  std::uint32_t stretches;
  std::uint32_t notification;  ///< Push: 1 + the counter that counts it; 0: none.
};
/// A stretch of the target's part, from the request's offset on.
struct Stretch {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// The reply to `reach`, in its words.
struct Reached {
  std::uint64_t bytes;
  std::uint32_t locks;
  std::uint32_t notifications;
  Rights rights;
  std::uint8_t in_program;
  std::array<std::uint8_t, 6> reserved;
};
static_assert(sizeof(Reached) == sizeof(Carried));

/// A request under way, in its origin's memory until it is done.
struct PendingRequest {
  std::atomic<bool> done{true};
  int peer = -1;
  Status status = Status::ok;
  bool takes_tail = false;  // the reply may have a tail
  bool has_tail = false;    // it has one, named by its words, which must be given back
  Carried words{};
  fabric::Tickets::Ticket ticket{};
  fabric::BulkPlace place{};
  std::byte* local = nullptr;  // local memory of a copy
  std::size_t bytes = 0;
};

/// The origin's side.
///
/// Threads: any.
/// Costs:   one head each way per 16 KiB, with several pieces under way.
class Origin {
 public:
  explicit Origin(fabric::Engine& engine) noexcept : engine_(engine) {}

  /// A push only reads `local`. Returns ok, peer_gone, or the error that the target found.
  Status copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
              std::uint64_t bytes) noexcept;
  Result<std::uint64_t> apply(std::uint32_t window, int peer, std::uint64_t offset,
                              const detail::AtomicWords& words) noexcept;

  // For other hosts: separate steps, so that several pieces are under way (copies.hpp).
  /// Allocates a block for a tail to `peer`. The caller must not hold a block that only it can give back, because
  /// others may wait for that.
  fabric::BulkPlace allocate(std::size_t bytes, int peer) noexcept;
  /// Allocates a block that is read here. If there is none, `end_oldest()` gives back a block that the caller holds, or
  /// returns false. So no thread holds a block while it waits.
  template <class EndOldest>
  fabric::BulkPlace allocate_or(const EndOldest& end_oldest, std::size_t bytes) noexcept {
    const int reader = engine_.session().rank();  // the last reader, whoever dies
    do {
      if (const auto place = engine_.bulk().allocate(bytes, reader)) return *place;
    } while (end_oldest());
    return allocate(bytes, reader);
  }
  /// Sends a request: of kind window_access; or window_push if it has a tail, which then belongs to the reader.
  void ask(PendingRequest& asked, int peer, std::uint32_t window, ServiceRequest request,
           Kind kind = Kind::window_access) noexcept;
  void wait(PendingRequest& asked) noexcept;
  [[nodiscard]] std::byte* at(fabric::BulkPlace block) const noexcept { return engine_.bulk().at(block); }
  /// Gives back a block that was not sent.
  void give_back(fabric::BulkPlace block) noexcept;
  /// Returns the data of the reply; the origin gives them back afterwards.
  [[nodiscard]] std::span<const std::byte> data_of(const PendingRequest& asked) const noexcept;
  void give_back_data(PendingRequest& asked) noexcept;

  void receive(const fabric::Head& reply) noexcept;  // called by the holder of the progress lock
  void gone(int rank) noexcept;

 private:
  Status copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                  std::size_t bytes) noexcept;
  bool take(const fabric::Head& head, const ServiceReply& reply, bool has_tail) noexcept;
  void end_copy(PendingRequest& asked, Service service) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // guards asked_
  std::array<PendingRequest*, fabric::tickets_max> asked_{};
};

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
  /// Serves a request and replies. `access`: the window that it names, or nullptr. Returns false if there is no room
  /// for the data of the reply: try again later.
  bool serve(WindowState* access, const fabric::Head& request) noexcept;

 private:
  struct Answer;
  class Named;
  Status perform(const ServiceRequest& request, int peer, std::byte* there, ServiceReply& reply) const noexcept;
  Status copy(const ServiceRequest& request, int peer, std::byte* there) const noexcept;
  Status perform_near(const WindowState& access, const ServiceRequest& request, int peer,
                      Answer& answer) const noexcept;
  Status perform_remote(WindowState& access, const ServiceRequest& request, int peer, std::span<const std::byte> tail,
                        Answer& answer) noexcept;
  Status take(WindowState& access, const ServiceRequest& request, int peer, const Named& named) noexcept;
  Status give(const WindowState& access, int peer, const Named& named, Answer& answer) noexcept;
  Status give_key(WindowState& access, int peer, Answer& answer) noexcept;
  void reply(const fabric::Head& request, const Answer& answer) noexcept;

  fabric::Engine& engine_;
  fabric::SendQueue& send_queue_;
  SpinLock lock_;  // guards requests_
  std::deque<fabric::Head> requests_;
};

}  // namespace tonari::window
