#include "far/preload/descriptors.hpp"

#include "far/preload/program.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tonari::far {

int connect_to_door(std::string_view suffix) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string_view name = program.door.data();
  if (name.empty() || 1 + name.size() + suffix.size() > sizeof address.sun_path) return -1;
  char* const end = std::ranges::copy(name, address.sun_path + 1).out;
  const std::size_t length = static_cast<std::size_t>(std::ranges::copy(suffix, end).out - address.sun_path);
  const long socket = system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (is_error(socket)) return -1;
  if (!is_error(insist(SYS_connect, socket, &address, offsetof(sockaddr_un, sun_path) + length))) {
    return static_cast<int>(socket);
  }
  (void)system_call(SYS_close, socket);
  return -1;
}

int receive_descriptor(int socket) noexcept {
  char byte = 0;
  iovec part{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (insist(SYS_recvmsg, socket, &message, MSG_CMSG_CLOEXEC) < 0) return -1;
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

long send_bytes(int socket, const void* start, std::size_t bytes, int attached) noexcept {
  iovec part{.iov_base = const_cast<void*>(start), .iov_len = bytes};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (attached >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &attached, sizeof attached);
  }
  return insist(SYS_sendmsg, socket, &message, MSG_NOSIGNAL);
}

// Same as in pager/userfaultfd.cpp: with the device, the kernel checks the file's permissions; without it, the
// process's rights.
OpenedFaults open_userfaultfd() noexcept {
  constexpr int flags = O_CLOEXEC | O_NONBLOCK;
  const long device = insist(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC, 0);
  long opened = -1;
  if (!is_error(device)) {
    opened = system_call(SYS_ioctl, device, USERFAULTFD_IOC_NEW, flags);
    (void)system_call(SYS_close, device);
  }
  if (is_error(opened)) opened = system_call(SYS_userfaultfd, flags);
  const bool reaches_everything = !is_error(opened);
  if (is_error(opened)) opened = system_call(SYS_userfaultfd, flags | UFFD_USER_MODE_ONLY);
  if (is_error(opened)) return {.error = error_of(opened)};
  return {static_cast<int>(opened), reaches_everything, 0};
}

}  // namespace tonari::far
