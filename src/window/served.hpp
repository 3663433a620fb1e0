#pragma once

#include "fabric/engine.hpp"
#include "window/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>

namespace tonari::window {

class Access;

// Accesses that only the owner of the memory can make: where one program may not copy from another, and atomic
// operations on a program's own memory. The asker sends a request and waits for its reply; what is copied passes
// through the asker's bulk memory. The owner checks everything again, and does it with no lock or baton held: the
// memory may be far, and take its time to come.
enum class Service : std::uint8_t { pull = 1, push = 2, atomic = 3 };

// Copies of so few bytes travel in the heads themselves.
inline constexpr std::size_t carried_bytes_max = 24;
using Carried = std::array<std::uint64_t, carried_bytes_max / 8>;

struct ServiceRequest {
  std::uint64_t offset;  // in the owner's part
  Carried
      words;  // a push: its bytes, if they are few; an atomic operation: operand, expected; else a fabric::BulkPlace
  std::uint32_t bytes;
  std::uint32_t ticket;  // reserves room for the reply
  std::uint32_t generation;
  Service service;
  AtomicOperation operation;
  std::uint8_t carried;  // 1: a copy whose bytes are in the heads
  std::uint8_t reserved;
};
struct ServiceReply {
  Carried words;  // a pull: its bytes, if they are few; an atomic operation: what was there
  std::uint32_t ticket;
  std::uint32_t generation;
  std::uint32_t status;
  std::uint32_t reserved;
};
static_assert(sizeof(ServiceRequest) == fabric::inline_bytes_max && sizeof(ServiceReply) == 40);

/// What a peer, or a descriptor, may say as one: 4 or 8 bytes, an operation that there is.
constexpr bool is_sane(const AtomicWords& words) noexcept {
  return (words.bytes == 4 || words.bytes == 8) && words.operation <= AtomicOperation::bit_xor;
}
/// Applies an atomic operation to an aligned word of 4 or 8 bytes; answers what was there.
std::uint64_t apply_to_word(std::byte* word, const AtomicWords& words) noexcept;

/// The asker's side.
///
/// Threads: any.
/// Costs:   a head there and one back for each 16 KiB, several of them on their way at once.
class Client {
 public:
  explicit Client(fabric::Engine& engine) noexcept : engine_(engine) {}

  /// `local` is only read by a push. Answers ok, or what the owner found wrong, or peer_gone.
  Status copy(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
              std::uint64_t bytes) noexcept;
  Fetched<std::uint64_t> apply(std::uint32_t window, int peer, std::uint64_t offset, const AtomicWords& words) noexcept;

  void receive(const fabric::Head& reply) noexcept;  // by the baton's holder
  void gone(int rank) noexcept;

 private:
  struct Asked;
  Status copy_few(Service service, std::uint32_t window, int peer, std::uint64_t offset, std::byte* local,
                  std::size_t bytes) noexcept;
  bool ask(Asked& asked, int peer, std::uint32_t window, ServiceRequest request) noexcept;
  void wait(Asked& asked) noexcept;
  void end_copy(Asked& asked, Service service) noexcept;
  void give_back(Asked& asked) noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // of the next
  std::array<Asked*, fabric::tickets_max> asked_{};
};

/// The owner's side.
///
/// Threads: receive() by the baton's holder; the rest by any with nothing held.
class Server {
 public:
  explicit Server(fabric::Engine& engine) noexcept : engine_(engine) {}

  void receive(const fabric::Head& request) noexcept;
  /// Takes the next request; false: there is none.
  bool next(fabric::Head& request) noexcept;
  /// Does what it asks for and replies. `access`: to the window that it names, or null when there is none.
  void serve(const Access* access, const fabric::Head& request) noexcept;

 private:
  Status perform(const ServiceRequest& request, int peer, std::byte* there, ServiceReply& reply) const noexcept;
  Status copy(const ServiceRequest& request, int peer, std::byte* there) const noexcept;

  fabric::Engine& engine_;
  SpinLock lock_;  // of the next
  std::deque<fabric::Head> requests_;
};

}  // namespace tonari::window
