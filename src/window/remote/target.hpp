#pragma once

#include "fabric/engine.hpp"
#include "fabric/send_queue.hpp"
#include "window/local/atomic_words.hpp"
#include "window/local/checked_copy.hpp"
#include "window/state/layout.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace tonari::window {

class WindowState;

// Accesses that only the owner of the memory can make: where one program may not copy from another, atomic operations
// on a program's own memory, and everything between hosts. The asker sends a request and waits for its reply. In a host
// what is copied passes through the asker's bulk memory; between hosts it travels with the heads. The owner checks
// everything again. A program's memory it touches with no lock or progress lock held: that may be far, and take its
// time to come.
enum class Service : std::uint8_t { pull = 1, push = 2, atomic = 3, reach = 4, relay = 5, key = 6 };

// Copies of so few bytes travel in the heads themselves.
inline constexpr std::size_t carried_bytes_max = 24;
using Carried = std::array<std::uint64_t, carried_bytes_max / 8>;
/// Of a push to another host, which has something to say beside: Beside, in the last word.
inline constexpr std::size_t remote_carried_bytes_max = 16;

struct ServiceRequest {
  std::uint64_t offset;  // in the owner's part
  // A push: its bytes, if they are few; an atomic operation: operand, expected; else a fabric::BulkPlace. Between
  // hosts: bytes and place of the tail, where there is one, and Beside.
  Carried words;
  std::uint32_t bytes;   // of all that is copied
  std::uint32_t ticket;  // reserves room for the reply
  std::uint32_t generation;
  Service service;
  detail::AtomicOperation operation;
  std::uint8_t carried;  // 1: a copy whose bytes are in the heads
  std::uint8_t reserved;
};
struct ServiceReply {
  // A pull: its bytes, if they are few, else bytes and place of the tail; an atomic operation: what was there.
  Carried words;
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint32_t status;
  std::uint32_t reserved;
};
static_assert(sizeof(ServiceRequest) == fabric::inline_bytes_max && sizeof(ServiceReply) == 40);
static_assert(offsetof(ServiceRequest, words) == fabric::tail_name(fabric::Kind::window_push)->bytes);
static_assert(offsetof(ServiceReply, words) == fabric::tail_name(fabric::Kind::window_data)->bytes);

/// The last word of a request from another host.
struct Beside {
  /// That the tail begins with; 0: what is copied is one, at the request's offset. Of a relay: its targets (relay.hpp).
  std::uint32_t stretches;
  std::uint32_t notification;  ///< Of a push: 1 + the counter that counts it; 0: none.
};
/// Of the owner's part, from the request's offset on.
struct Stretch {
  std::uint32_t offset;
  std::uint32_t bytes;
};

/// What `reach` answers, in the words of its reply.
struct Reached {
  std::uint64_t bytes;
  std::uint32_t locks;
  std::uint32_t notifications;
  Rights rights;
  std::uint8_t in_program;
  std::array<std::uint8_t, 6> reserved;
};
static_assert(sizeof(Reached) == sizeof(Carried));

/// One request on its way. In its asker's memory until done.
struct PendingRequest {
  std::atomic<bool> done{true};
  int peer = -1;
  Status status = Status::ok;
  bool takes_tail = false;  // a reply may have one
  bool has_tail = false;    // it has: named by its words, and to be given back
  Carried words{};
  fabric::Tickets::Ticket ticket{};
  fabric::BulkPlace place{};
  std::byte* local = nullptr;  // of a copy
  std::size_t bytes = 0;
};

/// The asker's side.
///
/// Threads: any.
/// Costs:   a head there and one back for each 16 KiB, several of them on their way at once.
class Origin {
 public:
  explicit Origin(fabric::Engine& engine) noexcept : engine_(engine) {}

  /// `local` is only read by a push. Answers ok, or what the owner found wrong, or peer_gone.
  Status copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
              std::uint64_t bytes) noexcept;
  Result<std::uint64_t> apply(std::uint32_t window, int peer, std::uint64_t offset,
                              const detail::AtomicWords& words) noexcept;

  // To another host: a step each, so that several are on their way at once (far.hpp).
  /// A block for a tail to `peer`. The caller holds none that only itself gives back: others may wait for those.
  fabric::BulkPlace allocate(std::size_t bytes, int peer) noexcept;
  /// A block that is read here. Where there is none, `end_oldest()` gives back one that the caller holds, or answers
  /// false; so nobody holds any while waiting.
  template <class EndOldest>
  fabric::BulkPlace allocate_or(const EndOldest& end_oldest, std::size_t bytes) noexcept {
    const int reader = engine_.session().rank();  // who reads it in the end, whoever dies
    do {
      if (const auto place = engine_.bulk().allocate(bytes, reader)) return *place;
    } while (end_oldest());
    return allocate(bytes, reader);
  }
  /// Sends a request: of kind window_access, or window_push if a tail goes with it, which is its reader's then.
  void ask(PendingRequest& asked, int peer, std::uint32_t window, ServiceRequest request,
           fabric::Kind kind = fabric::Kind::window_access) noexcept;
  void wait(PendingRequest& asked) noexcept;
  [[nodiscard]] std::byte* at(fabric::BulkPlace block) const noexcept { return engine_.bulk().at(block); }
  /// A block that was not sent.
  void give_back(fabric::BulkPlace block) noexcept;
  /// What came with the reply, which the asker gives back then.
  [[nodiscard]] std::span<const std::byte> data_of(const PendingRequest& asked) const noexcept;
  void give_back_data(PendingRequest& asked) noexcept;

  void receive(const fabric::Head& reply) noexcept;  // by the progress lock's holder
  void gone(int rank) noexcept;

 private:
  Status copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                  std::size_t bytes) noexcept;
  bool take(const fabric::Head& head, const ServiceReply& reply, bool has_tail) noexcept;
  void end_copy(PendingRequest& asked, Service service) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // of the next
  std::array<PendingRequest*, fabric::tickets_max> asked_{};
};

/// The owner's side.
///
/// Threads: receive() by the progress lock's holder; serve() by it too, where no program's memory is touched; the rest
/// by any
///          with nothing held.
class Target {
 public:
  Target(fabric::Engine& engine, fabric::SendQueue& send_queue) noexcept : engine_(engine), send_queue_(send_queue) {}

  void receive(const fabric::Head& request) noexcept;
  /// Takes the next request; false: there is none.
  bool next(fabric::Head& request) noexcept;
  /// Does what it asks for and replies. `access`: to the window that it names, or null when there is none. False: there
  /// is no room for what it reads, ask again.
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
  SpinLock lock_;  // of the next
  std::deque<fabric::Head> requests_;
};

}  // namespace tonari::window
