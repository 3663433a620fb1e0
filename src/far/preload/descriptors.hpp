#pragma once

#include "preload/system_calls.hpp"

#include <cerrno>
#include <cstddef>
#include <string_view>

// Connections to the keeper, and what travels through them, without errno.
namespace tonari::far {

using namespace preload;  // its tools

/// Makes a system call until no signal interrupts it.
template <class... Arguments>
long insist(long number, Arguments... arguments) noexcept {
  for (;;) {
    const long answer = system_call(number, arguments...);
    if (answer != -EINTR) return answer;
  }
}

/// Connects to the keeper's door, or to the place whose name has `suffix`. Returns -1 if no keeper listens there.
int connect_to_door(std::string_view suffix) noexcept;

/// Receives a descriptor, which comes with one byte. Returns -1 if there is none, or if this is not a keeper's socket.
int receive_descriptor(int socket) noexcept;

/// Sends bytes as one message, with a descriptor unless it is -1. Returns the number of bytes, or an error.
long send_bytes(int socket, const void* start, std::size_t bytes, int attached) noexcept;
template <class Message>
long send_message(int socket, const Message& message, int attached = -1) noexcept {
  return send_bytes(socket, &message, sizeof message, attached);
}

/// A new userfaultfd with the widest reach that this process may have.
struct OpenedFaults {
  int descriptor = -1;
  bool reaches_everything = false;
  int error = 0;  // not 0: there is no descriptor
};
OpenedFaults open_userfaultfd() noexcept;

}  // namespace tonari::far
