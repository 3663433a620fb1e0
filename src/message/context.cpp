#include "message/context.hpp"

#include "job/group.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <new>
#include <vector>

namespace tonari::message {

namespace {

// With more ranks than this, reading all other ranks' lines costs more than the rounds of a tree. If ranks share cores,
// the number of turns on a core dominates, and a board needs the fewest.
constexpr int ranks_with_a_core_each_max = 16;

}  // namespace

bool Context::may_meet(const MessageRuntime& runtime, std::span<const JobRank> ranks) noexcept {
  const job::Session& session = runtime.engine().session();
  const int most = runtime.engine().shared_cores() ? ranks_on_a_board_max : ranks_with_a_core_each_max;
  const int here = session.host(session.rank());
  return ranks.size() > 1 && ranks.size() <= static_cast<std::size_t>(most) &&
         std::ranges::all_of(ranks, [&](JobRank rank) { return session.host(rank.value()) == here; });
}

Context::Context(MessageRuntime& runtime, Group group, std::uint32_t id, std::span<const fabric::BoardPlace> places)
    : runtime_(runtime),
      group_(std::move(group)),
      peers_(&group_),
      rank_(job::position_in(group_, runtime.engine().session().rank())),
      hosts_(runtime.engine().session(), group_),
      id_(id) {
  if (places.empty()) return;
  std::vector<fabric::Board::Member> members;
  members.reserve(places.size());
  for (std::size_t member = 0; member < places.size(); ++member) {
    const int rank = job::rank_at(group_, static_cast<int>(member));
    members.push_back({&runtime.engine().board_of(rank, places[member].index), places[member].base});
  }
  place_ = places[static_cast<std::size_t>(rank_)];
  board_ = std::make_unique<fabric::Board>(std::move(members), static_cast<std::size_t>(rank_));
}

Context::Context(MessageRuntime& runtime, Group group, Group remote, std::uint32_t id)
    : runtime_(runtime),
      group_(std::move(group)),
      remote_(std::move(remote)),
      peers_(&*remote_),
      rank_(job::position_in(group_, runtime.engine().session().rank())),
      hosts_(runtime.engine().session(), group_),
      id_(id) {}

Context::Context(MessageRuntime& runtime, Group group, Provisional provisional)
    : Context(runtime, std::move(group), provisional.collective_id - collective_id_offset, {}) {
  tag_mask_ = 0x7fffffff;
  sequence_.store(static_cast<std::uint32_t>(provisional.tag), std::memory_order_relaxed);
}

Context::~Context() {
  if (board_ != nullptr) runtime_.engine().boards().give_back(place_, std::move(board_));
}

}  // namespace tonari::message
