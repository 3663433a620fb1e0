#pragma once

#include "far/channel.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

// The protocol between a process that forks, its child, and the keeper: whole messages over a SOCK_SEQPACKET connection
// in the abstract namespace. Parent and child use the same connection.
//
//   parent                                                  keeper
//     before the fork: connects, begin ------------------->
//                                                             lets no page leave any more, and takes snapshots
//       <-------------------------------------------- held, or refused: the child will have no far memory
//   fork
//     forked ---------------------------------------------->  lets pages leave again
//     closes its end
//                     child
//                       child, with its userfaultfd -------->
//       <-------------------------------------------- served: the keeper will serve its faults
//                       watches what it has inherited; goes on
//
// From then on only a thread of the child holds the child's end. So an end of file at the keeper means that the child's
// address space has ended.
namespace tonari::far {

/// Appended to the name of the keeper's door: where processes connect before they fork.
inline constexpr std::string_view forks_suffix = "-forks";

struct ForkMessage {
  enum class What : std::uint32_t { begin, held, refused, forked, child, served };

  std::uint32_t version = channel_version;
  What what = What::begin;
  std::uint64_t process = 0;      // begin: Channel::identity of the parent's own far memory; 0: it has none
  std::uint64_t inheritance = 0;  // begin: what the parent has inherited itself, or 0. served: the child's number
  std::uint32_t reaches_everything = 0;  // child: as in Hello
  std::uint32_t reserved = 0;
};
static_assert(std::is_trivially_copyable_v<ForkMessage>);

}  // namespace tonari::far
