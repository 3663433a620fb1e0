#include "message/creation.hpp"

#include "job/group.hpp"
#include "job/session.hpp"
#include "message/collectives.hpp"
#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "message/schedule.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace tonari::message {

namespace {

// Context ids come from a counter in the host's arena. Hosts use interleaved numbers, so that no two hosts draw the
// same. 0 is the world's id; as a result it means that no id is left.
std::uint32_t draw_context_id(const MessageRuntime& runtime) noexcept {
  const job::Session& session = runtime.engine().session();
  const auto hosts = static_cast<std::uint32_t>(session.hosts());
  const auto host = static_cast<std::uint32_t>(session.host(session.rank()));
  const std::uint32_t last = context_id_max / ids_per_context / hosts - 1;
  std::atomic<std::uint32_t>& drawn = session.arena().header().context;
  std::uint32_t seen = drawn.load(std::memory_order_relaxed);  // relaxed: the numbers only have to be unique
  while (seen < last && !drawn.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed)) {
  }
  return seen < last ? ids_per_context * (seen * hosts + host + 1) : 0;
}

// Both sides of an inter-communicator must agree which of them decides: the side whose rank 0 is the lower rank of the
// job.
bool is_first_side(const Context& context) noexcept {
  return !context.is_inter() || job::rank_at(context.group(), 0) < job::rank_at(context.peers(), 0);
}

// The member that is rank 0 of the other side.
int remote_root(const Context& context) noexcept { return context.size(); }

Group union_of(const Group& first, const Group& second) {
  std::vector<JobRank> ranks = first.ranks();
  ranks.insert(ranks.end(), second.ranks().begin(), second.ranks().end());
  return Group(std::move(ranks));
}

template <class T, std::size_t Count>
std::span<std::byte> bytes_of(std::span<T, Count> values) noexcept {
  return std::as_writable_bytes(values);
}

// These check the words of other ranks before they are used. A rank that says something impossible harms only the calls
// that it takes part in.
bool is_context_id(std::uint32_t id) noexcept { return id <= context_id_max && id % ids_per_context == 0; }

bool is_place(const fabric::BoardPlace& place) noexcept {
  return place.index < fabric::boards_max || place.index == place.none;
}

bool is_same(const fabric::BoardPlace& one, const fabric::BoardPlace& other) noexcept {
  return one.index == other.index && one.base == other.base;
}

// Whether each of the numbers from 0 to `count` - 1 is there at most once, and no other number.
template <class Numbers, class NumberOf = std::identity>
bool are_distinct(const Numbers& numbers, int count, NumberOf number_of = {}) {
  std::vector<bool> seen(static_cast<std::size_t>(count));
  for (const auto& each : numbers) {
    const int number = std::invoke(number_of, each);
    if (number < 0 || number >= count || seen[static_cast<std::size_t>(number)]) return false;
    seen[static_cast<std::size_t>(number)] = true;
  }
  return true;
}

bool have_all(std::span<const fabric::BoardPlace> places) noexcept {
  return std::ranges::none_of(places, [](const fabric::BoardPlace& place) { return place.index == place.none; });
}

/// Plays a collective that `write(Schedule&)` records.
template <class Write>
Status play(Context& context, Write&& write) noexcept {
  return start_collective(context, job::Wait::broadcast, std::forward<Write>(write)).wait().status;
}

/// The exchange by which the ranks of a context make another context of all of them, as executed by one rank. They tell
/// each other the new id and, if these ranks may use boards, a free board of each.
///
///   1. Each side gathers its boards at its rank 0, along a binomial tree.
///   2. The two ranks 0 swap what their sides have.
///   3. Each rank 0 broadcasts it.
class Talk {
 public:
  /// Messages go through `context`. The new one will have the ranks `all`. Throws std::bad_alloc.
  Talk(Context& context, Group all) : context_(context), all_(std::move(all)) {
    const bool meets = Context::may_meet(context_.runtime(), all_.ranks());
    const auto own = static_cast<std::size_t>(context_.size());
    places_begin_[1] = meets ? own : 0;
    places_.resize(meets ? all_.ranks().size() : 0);
    if (!meets) return;
    mine_ = boards().take();
    places_[static_cast<std::size_t>(context_.rank())] = mine_;
  }
  Talk(Talk&&) = delete;
  ~Talk() {
    // Once it was shown, another rank may have made the context with it.
    if (!is_shown_ && mine_.index != fabric::BoardPlace::none) boards().give_back(mine_);
  }

  void set_high(bool high) noexcept { facts_[0].is_high = high ? 1 : 0; }
  void write(Schedule& schedule) {
    is_shown_ = true;
    if (!places_.empty()) write_gather(schedule);
    if (context_.rank() == 0) {
      if (is_first_side(context_)) facts_[0].id = draw_context_id(context_.runtime());
      if (context_.is_inter()) write_swap(schedule);
    }
    write_broadcast(schedule);
  }

  // After the collective:

  /// Whether this rank's side comes before the other side in a merged communicator.
  [[nodiscard]] bool comes_first() const noexcept {
    if (facts_[0].is_high != facts_[1].is_high) return facts_[0].is_high == 0;
    return is_first_side(context_);
  }
  /// Makes a context of the ranks `group`. If `own_last`, the other side's ranks come first.
  NewContext make(const Group& group, bool own_last = false) {
    if (!is_credible()) return {Status::invalid, nullptr};  // the board stays in use: another rank may believe it
    if (id() == 0) return refuse();
    if (own_last) {
      std::rotate(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(places_begin_[1]), places_.end());
    }
    if (!have_all(places_)) {
      places_.clear();
      if (mine_.index != fabric::BoardPlace::none) boards().give_back(std::exchange(mine_, {}));
    }
    return {Status::ok, std::make_shared<Context>(context_.runtime(), group, id(), places_)};
  }
  NewContext make_inter() {
    if (!is_credible()) return {Status::invalid, nullptr};
    if (id() == 0) return refuse();
    return {Status::ok, std::make_shared<Context>(context_.runtime(), context_.group(), context_.peers(), id())};
  }

 private:
  struct Facts {
    std::uint32_t id = 0;
    std::uint32_t is_high = 0;
  };

  [[nodiscard]] fabric::Boards& boards() const noexcept { return context_.runtime().engine().boards(); }
  [[nodiscard]] std::uint32_t id() const noexcept { return facts_[is_first_side(context_) ? 0 : 1].id; }
  [[nodiscard]] bool is_credible() const noexcept {
    const auto own = static_cast<std::size_t>(context_.rank());
    return is_context_id(id()) && std::ranges::all_of(places_, is_place) &&
           (places_.empty() || is_same(places_[own], mine_));
  }
  NewContext refuse() noexcept {
    if (mine_.index != fabric::BoardPlace::none) boards().give_back(std::exchange(mine_, {}));
    return {Status::no_memory, nullptr};
  }
  // Boards of the own side (0) or the other (1).
  [[nodiscard]] std::span<fabric::BoardPlace> places_of(std::size_t side) noexcept {
    const std::size_t begin = places_begin_[side];
    const std::size_t end = side == 0 ? places_begin_[1] : places_.size();
    return std::span(places_).subspan(begin, end - begin);
  }

  // The ranks are on one host, so the tree is binomial over all of them: the child c has below it the ranks from c on,
  // as many as the lowest set bit of c says.
  void write_gather(Schedule& schedule) {
    const Tree tree = Tree::of_all(context_.hosts(), context_.rank(), 0);
    const auto places = places_of(0);
    const auto below = [&](int child) {
      const auto first = static_cast<std::size_t>(child);
      return places.subspan(first, std::min(first & (~first + 1), places.size() - first));
    };
    for (const int child : tree.children) schedule.receive(bytes_of(below(child)), child);
    schedule.next_round();
    if (tree.parent >= 0) schedule.send(bytes_of(below(context_.rank())), tree.parent);
    schedule.next_round();
  }
  void write_swap(Schedule& schedule) {
    const int other = remote_root(context_);
    schedule.send(bytes_of(std::span(facts_).first(1)), other);
    schedule.receive(bytes_of(std::span(facts_).subspan(1)), other);
    if (!places_.empty()) {
      schedule.send(bytes_of(places_of(0)), other);
      schedule.receive(bytes_of(places_of(1)), other);
    }
    schedule.next_round();
  }
  void write_broadcast(Schedule& schedule) {
    const Tree tree = Tree::of_all(context_.hosts(), context_.rank(), 0);
    if (tree.parent >= 0) {
      schedule.receive(bytes_of(std::span(facts_)), tree.parent);
      if (!places_.empty()) schedule.receive(bytes_of(std::span(places_)), tree.parent);
      schedule.next_round();
    }
    for (auto child = tree.children.rbegin(); child != tree.children.rend(); ++child) {
      schedule.send(bytes_of(std::span(facts_)), *child);
      if (!places_.empty()) schedule.send(bytes_of(std::span(places_)), *child);
    }
  }

  Context& context_;
  Group all_;
  std::array<Facts, 2> facts_;                 // of the own side and of the other
  std::array<std::size_t, 2> places_begin_{};  // where the boards of each side begin
  std::vector<fabric::BoardPlace> places_;     // of the own side, then of the other; empty if there will be no boards
  fabric::BoardPlace mine_;
  bool is_shown_ = false;
};

}  // namespace

NewContext create_context(MessageRuntime& runtime, const Group& group, std::uint32_t parent_id, int tag) noexcept {
  if (tag < 0 || job::position_in(group, runtime.engine().session().rank()) < 0) return {Status::invalid, nullptr};
  try {
    Context provisional(runtime, group, Context::Provisional{parent_id + creation_id_offset, tag});
    Talk talk(provisional, group);
    const Status status = play(provisional, [&](Schedule& schedule) { talk.write(schedule); });
    return status == Status::ok ? talk.make(group) : NewContext{status, nullptr};
  } catch (const std::bad_alloc&) {
    return {Status::no_memory, nullptr};
  }
}

Request start_duplicate(Context& context, std::shared_ptr<Context>& result) noexcept {
  try {
    const bool inter = context.is_inter();
    const auto talk = std::make_shared<Talk>(context, inter ? Group() : context.group());
    return start_collective(context, job::Wait::broadcast, [&](Schedule& schedule) {
      talk->write(schedule);
      schedule.at_end([talk, inter, &context, &result](Status status) {
        if (status != Status::ok) return status;
        try {
          const NewContext made = inter ? talk->make_inter() : talk->make(context.group());
          result = made.value;
          return made.status;
        } catch (const std::bad_alloc&) {
          return Status::no_memory;
        }
      });
    });
  } catch (const std::bad_alloc&) {
    (void)context.next_collective();  // it still counts as a collective, for the ranks that begin it
    return Requests::completed(Status::no_memory);
  }
}

NewContext duplicate(Context& context) noexcept {
  NewContext made;
  made.status = start_duplicate(context, made.value).wait().status;
  return made;
}

NewContext merge(Context& inter, bool high) noexcept {
  if (!inter.is_inter()) return {Status::invalid, nullptr};
  try {
    Talk talk(inter, union_of(inter.group(), inter.peers()));
    talk.set_high(high);
    const Status status = play(inter, [&](Schedule& schedule) { talk.write(schedule); });
    if (status != Status::ok) return {status, nullptr};
    return talk.comes_first() ? talk.make(union_of(inter.group(), inter.peers()))
                              : talk.make(union_of(inter.peers(), inter.group()), true);
  } catch (const std::bad_alloc&) {
    return {Status::no_memory, nullptr};
  }
}

namespace {

// The choice of one rank in a split.
struct Choice {
  int color = -1;
  int key = 0;
  std::uint32_t side = 0;  // 0: the side that is_first_side()
  int rank = 0;            // in its side of the parent
  std::uint32_t context_id = 0;
  fabric::BoardPlace place{};  // a board that it has free

  [[nodiscard]] auto order() const noexcept { return std::tuple(color, side, key, rank); }
};

// Sorts the choices, and gives all ranks that chose the same color the same id. A color of an inter-communicator gets
// one only if both sides chose it.
void decide(const Context& context, std::span<Choice> choices) noexcept {
  std::ranges::sort(choices, {}, &Choice::order);
  for (auto first = choices.begin(); first != choices.end();) {
    const auto end = std::find_if(first, choices.end(), [&](const Choice& each) { return each.color != first->color; });
    const bool is_wanted = first->color >= 0 && (!context.is_inter() || first->side != (end - 1)->side);
    const std::uint32_t id = is_wanted ? draw_context_id(context.runtime()) : 0;
    std::for_each(first, end, [id](Choice& each) { each.context_id = id; });
    first = end;
  }
}

// Exchanges the choices of all ranks; on return they are sorted and decided. `choices` begins with the own side's.
Status exchange_choices(Context& context, const Choice& mine, std::span<Choice> choices) noexcept {
  Communicator own_side = Communicators::borrow(context);
  const auto own = choices.first(static_cast<std::size_t>(context.size()));
  const auto theirs = choices.subspan(own.size());
  const int other = remote_root(context);
  const bool decides = is_first_side(context);
  const bool is_root = context.rank() == 0;

  // After nonsense the other ranks still wait for the choices, and find them wrong.
  const auto goes_on = [](Status status) { return status == Status::ok || status == Status::invalid; };
  Status status = own_side.gather(mine, own, Rank{0});
  if (goes_on(status) && context.is_inter()) {
    status = play(context, [&](Schedule& schedule) {
      if (is_root && decides) schedule.receive(bytes_of(theirs), other);
      if (is_root && !decides) schedule.send(bytes_of(own), other);
    });
  }
  if (is_root && decides && goes_on(status)) decide(context, choices);
  if (goes_on(status) && context.is_inter()) {
    status = play(context, [&](Schedule& schedule) {
      if (is_root && decides) schedule.send(bytes_of(choices), other);
      if (is_root && !decides) schedule.receive(bytes_of(choices), other);
    });
  }
  return goes_on(status) ? own_side.broadcast(choices, Rank{0}) : status;
}

// Returns whether each rank of the context has one choice, and this rank its own.
bool are_credible(const Context& context, const Choice& mine, std::span<const Choice> choices) {
  std::vector<int> members;
  bool is_mine_there = false;
  for (const Choice& each : choices) {
    if (each.side > 1 || each.rank < 0 || !is_context_id(each.context_id) || !is_place(each.place)) return false;
    const bool is_own_side = each.side == mine.side;
    if (each.rank >= (is_own_side ? context.size() : context.peers().size())) return false;
    members.push_back(is_own_side ? each.rank : context.size() + each.rank);
    if (each.order() == mine.order()) is_mine_there = is_same(each.place, mine.place);
  }
  return is_mine_there && are_distinct(members, static_cast<int>(choices.size())) &&
         std::ranges::is_sorted(choices, {}, &Choice::order);
}

Group group_of(const Group& parent, std::span<const Choice> choices) {
  std::vector<JobRank> ranks;
  ranks.reserve(choices.size());
  for (const Choice& choice : choices) ranks.push_back(parent.at(Rank{choice.rank}));
  return Group(std::move(ranks));
}

// Returns the boards of a new communicator's ranks, if it may use boards and each of its ranks has one to spare.
std::vector<fabric::BoardPlace> places_of(const MessageRuntime& runtime, std::span<const Choice> choices,
                                          const Group& group) {
  std::vector<fabric::BoardPlace> places;
  if (!Context::may_meet(runtime, group.ranks())) return places;
  for (const Choice& choice : choices) places.push_back(choice.place);
  if (!have_all(places)) places.clear();
  return places;
}

NewContext make_inter(const Context& parent, std::span<const Choice> chosen) {
  const auto second = std::ranges::find(chosen, std::uint32_t{1}, &Choice::side);
  const auto in_first = static_cast<std::size_t>(second - chosen.begin());
  const auto first_side = chosen.first(in_first);
  const auto second_side = chosen.subspan(in_first);
  const bool is_first = is_first_side(parent);
  return {Status::ok, std::make_shared<Context>(
                          parent.runtime(), group_of(parent.group(), is_first ? first_side : second_side),
                          group_of(parent.peers(), is_first ? second_side : first_side), chosen.front().context_id)};
}

}  // namespace

NewContext split(Context& context, int color, int key) noexcept {
  MessageRuntime& runtime = context.runtime();
  fabric::Boards& boards = runtime.engine().boards();
  try {
    const std::size_t others = context.is_inter() ? context.peers().ranks().size() : 0;
    std::vector<Choice> choices(static_cast<std::size_t>(context.size()) + others);
    const fabric::BoardPlace place = context.is_inter() ? fabric::BoardPlace{} : boards.take();
    const auto give_back = [&] {
      if (place.index != fabric::BoardPlace::none) boards.give_back(place);
    };
    const Choice mine{std::max(color, -1), key, is_first_side(context) ? 0U : 1U, context.rank(), 0, place};
    const Status status = exchange_choices(context, mine, choices);
    // The board stays in use: other ranks may have made the group.
    if (status != Status::ok) return {status, nullptr};
    if (!are_credible(context, mine, choices)) return {Status::invalid, nullptr};

    const auto first = std::ranges::lower_bound(choices, mine.color, {}, &Choice::color);
    const auto last = std::ranges::upper_bound(choices, mine.color, {}, &Choice::color);
    const std::span<const Choice> chosen(first, last);
    const bool is_any = color >= 0 && (!context.is_inter() || chosen.front().side != chosen.back().side);
    if (!is_any || chosen.front().context_id == 0) {
      give_back();
      return {is_any ? Status::no_memory : Status::ok, nullptr};
    }
    if (context.is_inter()) return make_inter(context, chosen);
    Group group = group_of(context.group(), chosen);
    const auto places = places_of(runtime, chosen, group);
    if (places.empty()) give_back();
    return {Status::ok, std::make_shared<Context>(runtime, std::move(group), chosen.front().context_id, places)};
  } catch (const std::bad_alloc&) {
    return {Status::no_memory, nullptr};
  }
}

NewContext create(Context& context, const Group& group) noexcept {
  const int position = job::position_in(group, job::rank_at(context.group(), context.rank()));
  if (position < 0) return split(context, -1, 0);
  // Ranks of one side may pass different groups, unless it is an inter-communicator. A group is named by its first
  // rank.
  return split(context, context.is_inter() ? 0 : group.at(Rank{0}).value(), position);
}

namespace {

// The message of the leader of one side to the other leader, and then to its own side about the other.
struct SideFacts {
  Status status = Status::ok;
  int ranks = 0;
  std::uint32_t id = 0;
};

// A pair of leaders that tell each other about their sides. Messages cannot be confused with others of the pair.
class Leaders {
 public:
  Leaders(Context& local, const Bridge& bridge, int tag) : local_(local), bridge_(bridge), tag_(tag) {}

  /// Returns the other side's facts, and its ranks in `theirs`.
  SideFacts meet(std::vector<JobRank>& theirs) {
    const int self = job::rank_at(local_.group(), local_.rank());
    const bool is_valid = tag_ >= 0 && bridge_.peer != nullptr && bridge_.remote_leader >= 0 &&
                          bridge_.remote_leader < bridge_.peer->peers().size() &&
                          job::rank_at(bridge_.peer->peers(), bridge_.remote_leader) != self;
    if (!is_valid) return {.status = Status::invalid};
    const int other = job::rank_at(bridge_.peer->peers(), bridge_.remote_leader);
    const Group pair({JobRank{std::min(self, other)}, JobRank{std::max(self, other)}});
    const std::uint32_t id = self < other ? draw_context_id(local_.runtime()) : 0;
    std::array<SideFacts, 2> sides{SideFacts{.ranks = local_.size(), .id = id}, {}};
    Status status = swap(pair, bytes_of(std::span(sides).first(1)), bytes_of(std::span(sides).subspan(1)));
    if (status != Status::ok) return {.status = status};
    const int ranks_max = local_.runtime().engine().session().size();
    const bool is_credible = sides[1].ranks > 0 && sides[1].ranks <= ranks_max && is_context_id(sides[1].id) &&
                             (sides[1].id == 0 || self > other);
    if (!is_credible) return {.status = Status::invalid};
    std::vector<JobRank> mine = local_.group().ranks();
    theirs.resize(static_cast<std::size_t>(sides[1].ranks));
    status = swap(pair, bytes_of(std::span(mine)), bytes_of(std::span(theirs)));
    const bool overlap = std::ranges::any_of(theirs, [this](JobRank rank) { return local_.has(rank.value()); });
    const bool is_wrong = overlap || !are_distinct(theirs, ranks_max, &JobRank::value);
    if (status == Status::ok && is_wrong) status = Status::invalid;
    return {.status = status, .ranks = sides[1].ranks, .id = std::max(id, sides[1].id)};
  }

 private:
  Status swap(const Group& pair, std::span<const std::byte> mine, std::span<std::byte> theirs) {
    Context both(local_.runtime(), pair, Context::Provisional{bridge_.peer->id() + inter_creation_id_offset, tag_});
    return play(both, [&](Schedule& schedule) {
      schedule.send(mine, 1 - both.rank());
      schedule.receive(theirs, 1 - both.rank());
    });
  }

  Context& local_;
  const Bridge& bridge_;
  int tag_;
};

}  // namespace

NewContext create_inter_context(Context& local, int local_leader, const Bridge& bridge, int tag) noexcept {
  if (!is_rank(local, local_leader)) return {Status::invalid, nullptr};
  try {
    Communicator own_side = Communicators::borrow(local);
    std::vector<JobRank> theirs;
    SideFacts facts;
    if (local.rank() == local_leader) facts = Leaders(local, bridge, tag).meet(theirs);
    Status status = own_side.broadcast(facts, Rank{local_leader});
    if (status == Status::ok) status = fabric::status_of(static_cast<std::uint32_t>(facts.status));
    if (status != Status::ok) return {status, nullptr};
    const int ranks_max = local.runtime().engine().session().size();
    if (facts.ranks <= 0 || facts.ranks > ranks_max || !is_context_id(facts.id)) return {Status::invalid, nullptr};
    theirs.resize(static_cast<std::size_t>(facts.ranks));
    status = own_side.broadcast(theirs, Rank{local_leader});
    if (status != Status::ok) return {status, nullptr};
    if (!are_distinct(theirs, ranks_max, &JobRank::value)) return {Status::invalid, nullptr};
    if (facts.id == 0) return {Status::no_memory, nullptr};
    return {Status::ok, std::make_shared<Context>(local.runtime(), local.group(), Group(std::move(theirs)), facts.id)};
  } catch (const std::bad_alloc&) {
    return {Status::no_memory, nullptr};
  }
}

}  // namespace tonari::message
