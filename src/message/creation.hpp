#pragma once

#include "message/context.hpp"

#include <tonari/message.hpp>

#include <cstdint>
#include <memory>

// Making communicators. Each call is collective over the ranks that it names, and returns on each of them
//
//   ok          the new context; null if this rank is in no new communicator.
//   peer_gone   a rank that the call needs died. Other ranks may have the new communicator.
//   invalid     an argument is wrong. All ranks that would wait for this one return it too, unless the call says
//               otherwise.
//   no_memory   the system refused memory, or all communicator numbers of the job are used: 2^30, which are not reused.
//
// The context lives as long as one of its owners, and must end before the job does.
//
// Threads: any. Two calls at once must differ in their context, in the parent's id or in the tag.
namespace tonari::message {

class MessageRuntime;

using NewContext = Result<std::shared_ptr<Context>>;

/// Makes a communicator of `group`, to which this rank belongs, collectively over the ranks of `group` alone
/// (MPI_Comm_create_group). All ranks pass the same group, parent and tag. `parent_id`: id() of a context that has all
/// of them, or no_parent_id. `tag`: at least 0. Messages and collectives of the parent do not disturb the call.
/// Returns invalid, on this rank only, if the group does not have this rank or the tag is negative. After peer_gone,
/// messages of the failed call may remain: pass another tag.
/// Costs: two messages per rank, log2 of the ranks one after the other.
NewContext create_context(MessageRuntime& runtime, const Group& group, std::uint32_t parent_id, int tag) noexcept;

/// Makes a communicator with the same ranks, or an inter-communicator with the same sides.
NewContext duplicate(Context& context) noexcept;
/// Starts the same. Once the request is complete with ok, `result` is the new context. The caller keeps `result` and
/// `context` until then.
Request start_duplicate(Context& context, std::shared_ptr<Context>& result) noexcept;

/// Makes one communicator per color, of the ranks that pass it. They are ordered by key, and by their rank in `context`
/// where keys are equal. A rank with a negative color is in none. A color of an inter-communicator becomes an
/// inter-communicator of the ranks that pass it on both sides; without ranks on one side it becomes nothing.
NewContext split(Context& context, int color, int key) noexcept;
/// Makes a communicator of the ranks of `group` (MPI_Comm_create): a part of the ranks of `context`. Each rank passes a
/// group; a rank that its group does not have is in no new communicator. All ranks of a group must pass that group. In
/// an inter-communicator all ranks of a side pass one group of that side; without ranks on one side there is no new
/// communicator.
NewContext create(Context& context, const Group& group) noexcept;

/// The way from one side of a new inter-communicator to the other.
struct Bridge {
  Context* peer = nullptr;  ///< Has both leaders.
  int remote_leader = -1;   ///< The other side's leader, as a rank of `peer`.
};
/// Makes an inter-communicator whose sides are the ranks of `local` and the ranks of the other side's `local`
/// (MPI_Intercomm_create). Only the rank `local_leader` of `local` needs a bridge. Both leaders pass the same `tag`, at
/// least 0; messages of `peer` do not disturb the call. Returns invalid, on all ranks of both sides, if the sides have
/// a common rank. If only one leader's bridge is wrong, only its side returns invalid, and the other waits.
NewContext create_inter_context(Context& local, int local_leader, const Bridge& bridge, int tag) noexcept;

/// Makes a communicator of all ranks of both sides of `inter` (MPI_Intercomm_merge). The side that passes `high` comes
/// after the other one. If both or neither pass it, the side comes first whose rank 0 is the lower rank of the job.
/// `high` of each side's rank 0 decides.
NewContext merge(Context& inter, bool high) noexcept;

}  // namespace tonari::message
