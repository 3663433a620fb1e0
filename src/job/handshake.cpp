#include "job/handshake.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace tonari::job {

namespace {

struct Address {
  sockaddr_un bytes{};
  socklen_t length = 0;
};

// Addresses in the abstract namespace are a zero byte and the name, without a zero at the end.
Address abstract_address(std::string_view name) {
  Address address;
  if (name.empty() || name.size() + 1 > sizeof address.bytes.sun_path) {
    throw SetupError(fmt::format("TONARI_JOIN={}: not a name that `tonari run` sets; unset it to run alone", name));
  }
  address.bytes.sun_family = AF_UNIX;
  name.copy(address.bytes.sun_path + 1, name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

FileDescriptor make_socket() {
  FileDescriptor made{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  if (!made) throw_system_error("socket(AF_UNIX, SOCK_SEQPACKET)");
  return made;
}

// Room for one descriptor attached to a message.
struct alignas(cmsghdr) Attachment {
  std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes{};
};

}  // namespace

std::string join_name(pid_t starter) { return fmt::format("tonari-run-{}", starter); }

FileDescriptor listen_at(std::string_view name) {
  FileDescriptor listener = make_socket();
  const Address address = abstract_address(name);
  if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) != 0 ||
      ::listen(listener.number(), SOMAXCONN) != 0) {
    throw_system_error(fmt::format("listening at the abstract socket @{}", name),
                       "another process has taken the name: try again");
  }
  return listener;
}

FileDescriptor try_connect(std::string_view name) {
  FileDescriptor connection = make_socket();
  const Address address = abstract_address(name);
  int failed = 0;
  do {
    failed = ::connect(connection.number(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length);
  } while (failed != 0 && errno == EINTR);
  if (failed == 0) return connection;
  const int error = errno;
  connection = {};
  errno = error;
  return connection;
}

Peer peer_of(const FileDescriptor& connection) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) {
    throw_system_error("asking for the process at the other end of a connection (SO_PEERCRED)");
  }
  return {.pid = credentials.pid, .user = credentials.uid};
}

bool send_message(const FileDescriptor& connection, const void* message, std::size_t bytes, int attached) noexcept {
  iovec part{.iov_base = const_cast<void*>(message), .iov_len = bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Attachment room;
  if (attached >= 0) {
    header.msg_control = room.bytes.data();
    header.msg_controllen = room.bytes.size();
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof attached);
    std::memcpy(CMSG_DATA(control), &attached, sizeof attached);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(connection.number(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes);
}

ssize_t receive_message(const FileDescriptor& connection, void* message, std::size_t bytes, bool wait,
                        FileDescriptor* attached) noexcept {
  iovec part{.iov_base = message, .iov_len = bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  Attachment room;
  header.msg_control = room.bytes.data();
  header.msg_controllen = room.bytes.size();
  ssize_t received = 0;
  do {
    received = ::recvmsg(connection.number(), &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (received < 0 && errno == EINTR);
  if (received < 0) return errno == ECONNRESET ? 0 : -1;

  FileDescriptor found;
  if (const cmsghdr* const control = CMSG_FIRSTHDR(&header);
      control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(control), sizeof number);
    found = FileDescriptor{number};
  }
  if (attached != nullptr) *attached = std::move(found);
  if ((header.msg_flags & MSG_TRUNC) != 0) {
    errno = EMSGSIZE;
    return -1;
  }
  return received;
}

}  // namespace tonari::job
