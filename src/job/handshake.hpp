#pragma once

#include "base/file_descriptor.hpp"
#include "job/identity.hpp"

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace tonari::job {

// Messages between ranks and `tonari run` while joining: whole messages over a SOCK_SEQPACKET connection in the
// abstract namespace, which leaves no file behind. Magic and version are first in every version.

inline constexpr std::uint64_t handshake_magic =
    0x0069'7261'6e6f'74a5;  // "tonari" and a byte that does not occur in text
inline constexpr std::uint32_t handshake_version = 1;
inline constexpr std::size_t secret_bytes = 32;
inline constexpr std::size_t secret_digits = 2 * secret_bytes;

enum class Step : std::uint32_t {
  hello = 1,  ///< rank: its number and the secret
  tested,     ///< rank: whether it could read its neighbour's memory
  look,       ///< `tonari status`: asks for the arena, to observe it
  welcome,    ///< run: the rank is admitted; carries the arena's descriptor
  start,      ///< run: all ranks are admitted
  go,         ///< run: all ranks have tested; says whether all succeeded
  refused,    ///< run: the rank is not admitted; the text says why
  stop,       ///< run: the job cannot start; run itself reports why
};

// Offsets in bytes:
//   0        8         12     16     20       24      32             96       160
//   +--------+---------+------+------+--------+-------+--------------+--------+
//   | magic  | version | step | rank | copies | probe | identity 64  | secret |
//   +--------+---------+------+------+--------+-------+--------------+--------+
/// Message from a rank, or from an observer.
struct Request {
  std::uint64_t magic = handshake_magic;
  std::uint32_t version = handshake_version;
  Step step = Step::hello;
  std::int32_t rank = -1;
  std::uint32_t copies = 0;  // tested: 1 if the neighbour's memory could be read
  std::uint64_t probe = 0;   // hello: address of a word that holds probe_value(rank)
  HostIdentity host{};
  std::array<char, secret_digits> secret{};
};
static_assert(sizeof(Request) == 160 && offsetof(Request, host) == 32 && offsetof(Request, secret) == 96);
static_assert(std::has_unique_object_representations_v<Request>, "padding would carry stale bytes to a peer");

//   0        8         12     16      20        24       28         32       544
//   +--------+---------+------+-------+---------+--------+----------+--------+
//   | magic  | version | step | ranks | starter | copies | reserved | text   |
//   +--------+---------+------+-------+---------+--------+----------+--------+
/// Message from `tonari run`.
struct Reply {
  std::uint64_t magic = handshake_magic;
  std::uint32_t version = handshake_version;
  Step step = Step::welcome;
  std::int32_t ranks = 0;
  std::int32_t starter = 0;  // process id of `tonari run`
  std::uint32_t copies = 0;  // go: 1 if every rank could read its neighbour's memory
  std::uint32_t reserved = 0;
  std::array<char, 512> text{};  // refused: the reason, followed by at least one zero

  void say(std::string_view words) noexcept { words.copy(text.data(), text.size() - 1); }
};
static_assert(sizeof(Reply) == 544 && offsetof(Reply, text) == 32);
static_assert(std::has_unique_object_representations_v<Reply>, "padding would carry stale bytes to a peer");

/// Value of a rank's probe word.
constexpr std::uint64_t probe_value(int rank) noexcept {
  return 0x6e65'6967'6862'6f75 ^ static_cast<std::uint64_t>(rank);
}

/// Returns the name of the socket on which the `tonari run` with this process id listens.
std::string join_name(pid_t starter);

FileDescriptor listen_at(std::string_view name);  ///< Throws SetupError.
FileDescriptor try_connect(
    std::string_view name);  ///< Empty, with errno set, if no process listens there. Throws SetupError.

/// The process at the other end of a connection: for a connection accepted from a listener the process that connected,
/// otherwise the process that listens.
struct Peer {
  pid_t pid = 0;
  uid_t user = 0;
};
Peer peer_of(const FileDescriptor& connection);  ///< Throws SetupError.

/// Sends one message, with a descriptor if `attached` is not -1. Returns false if the other side has closed the
/// connection or does not read.
bool send_message(const FileDescriptor& connection, const void* message, std::size_t bytes, int attached = -1) noexcept;

/// Returns the length of the next message, 0 if the other side has closed the connection, or -1 with errno set. EAGAIN:
/// `wait` is false and no message is there; EMSGSIZE: the message is longer than `bytes`.
ssize_t receive_message(const FileDescriptor& connection, void* message, std::size_t bytes, bool wait,
                        FileDescriptor* attached = nullptr) noexcept;

}  // namespace tonari::job
