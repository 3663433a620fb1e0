#include "base/error.hpp"
#include "job/arena.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>

// Doorbells that are sockets, in the abstract namespace, so that no files remain. A packet from a stranger does no
// harm: the thread wakes, finds nothing to do, and sleeps again.
namespace tonari::job {

namespace {

struct Name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

Name name_of(std::uint64_t arena, int rank, Arena::Doorbell doorbell) noexcept {
  Name name;
  name.address.sun_family = AF_UNIX;
  char* const text = name.address.sun_path + 1;  // after a zero byte: the abstract namespace
  char* const end = fmt::format_to_n(text, sizeof name.address.sun_path - 1, "tonari-bell-{:016x}-{}-{}", arena, rank,
                                     static_cast<int>(doorbell))
                        .out;
  name.bytes = static_cast<socklen_t>(end - reinterpret_cast<char*>(&name.address));
  return name;
}

}  // namespace

FileDescriptor Arena::open_doorbell(int rank, Doorbell doorbell) const {
  FileDescriptor socket{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const Name name = name_of(header().name, rank, doorbell);
  if (!socket || ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&name.address), name.bytes) != 0) {
    throw_system_error(fmt::format("making the socket that wakes rank {}", rank), "see ulimit -n");
  }
  return socket;
}

void Arena::ring_socket(int rank, Doorbell doorbell) const noexcept {
  const Name name = name_of(header().name, rank, doorbell);
  const char nothing = 0;
  // If sending fails, either a packet already waits there and will wake the rank, or the rank has ended.
  (void)::sendto(ringer_.number(), &nothing, 1, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&name.address),
                 name.bytes);
}

}  // namespace tonari::job
