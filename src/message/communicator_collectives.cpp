#include "message/collectives.hpp"
#include "message/exchanges.hpp"
#include "message/reductions.hpp"

#include <tonari/message.hpp>

#include <cstring>
#include <optional>
#include <vector>

// The collectives of Communicator: they check their arguments and record or start the runtime's collectives.
namespace tonari {

using detail::Counts;
using detail::Reduction;
using message::Context;
using message::is_rank;
using message::Part;
using message::refuse;
using message::Schedule;
using message::sent_part;
using message::start_collective;

namespace {

// The place of each rank's part in a buffer.
class Places {
 public:
  // All parts have one size. Nothing if they do not fit into `bytes`.
  static std::optional<Places> equal(const Context& context, std::span<const std::byte> bytes, std::size_t part) {
    if (bytes.size() / static_cast<std::size_t>(context.size()) < part) return std::nullopt;
    return Places(bytes, part, {});
  }
  // Sizes are given by counts.
  static std::optional<Places> counted(const Context& context, std::span<const std::byte> bytes, const Counts& counts) {
    if (counts.of_ranks.size() != static_cast<std::size_t>(context.size())) return std::nullopt;
    std::vector<std::size_t> starts{0};
    std::size_t left = bytes.size() / counts.element_bytes;
    for (const std::size_t count : counts.of_ranks) {
      if (count > left) return std::nullopt;
      left -= count;
      starts.push_back(starts.back() + count * counts.element_bytes);
    }
    return Places(bytes, 0, std::move(starts));
  }

  Part operator()(int rank) const noexcept {
    const auto index = static_cast<std::size_t>(rank);
    if (starts_.empty()) return sent_part(bytes_.subspan(index * part_, part_));
    return sent_part(bytes_.subspan(starts_[index], starts_[index + 1] - starts_[index]));
  }

 private:
  Places(std::span<const std::byte> bytes, std::size_t part, std::vector<std::size_t> starts) noexcept
      : bytes_(bytes), part_(part), starts_(std::move(starts)) {}
  std::span<const std::byte> bytes_;
  std::size_t part_;
  std::vector<std::size_t> starts_;  // of the parts, and the end of the last one; empty: all have part_ bytes
};

// Calls `make`, which may allocate. Without memory it returns what `make` returns for arguments that do not fit: the
// collective then fails on this rank.
template <class Make>
std::optional<Places> try_places(Make&& make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

// If the arguments of a rank do not fit, its collective returns invalid, but it takes part with empty messages. So the
// other ranks proceed, and ranks that expected more bytes return invalid too.
void write_nothing_to_and_from_all(Schedule& schedule, const Context& context, bool sends, bool receives) {
  schedule.fail(Status::invalid);
  for (int rank = 0; rank < context.size(); ++rank) {
    if (rank == context.rank()) continue;
    if (sends) schedule.send(std::span<const std::byte>{}, rank);
    if (receives) schedule.receive(std::span<std::byte>{}, rank);
  }
}

Request gather_parts(Context& context, std::span<const std::byte> mine, const std::optional<Places>& all,
                     int root) noexcept {
  if (!is_rank(context, root)) return refuse(context);
  return start_collective(context, job::Wait::gather, [&](Schedule& schedule) {
    const Part own = sent_part(mine);
    if (context.rank() != root) return schedule.send(own, root);
    if (!all) return write_nothing_to_and_from_all(schedule, context, false, true);
    message::write_gather(schedule, context, &own, std::cref(*all), root);
  });
}

Request scatter_parts(Context& context, const std::optional<Places>& all, std::span<std::byte> mine,
                      int root) noexcept {
  if (!is_rank(context, root)) return refuse(context);
  return start_collective(context, job::Wait::scatter, [&](Schedule& schedule) {
    const Part own(mine);
    if (context.rank() != root) return schedule.receive(own, root);
    if (!all) return write_nothing_to_and_from_all(schedule, context, true, false);
    message::write_scatter(schedule, context, std::cref(*all), &own, root);
  });
}

Request exchange_parts(Context& context, const std::optional<Places>& sent,
                       const std::optional<Places>& received) noexcept {
  return start_collective(context, job::Wait::all_to_all, [&](Schedule& schedule) {
    if (!sent || !received) return write_nothing_to_and_from_all(schedule, context, true, true);
    message::write_all_to_all(schedule, context, std::cref(*sent), std::cref(*received));
  });
}

// If the parts do not fit, this rank forwards only empty messages.
Request gather_all_parts(Context& context, std::span<const std::byte> mine, const std::optional<Places>& all) noexcept {
  return start_collective(context, job::Wait::all_gather, [&](Schedule& schedule) {
    if (!all) schedule.fail(Status::invalid);
    const Part own = all ? sent_part(mine) : Part(std::span<std::byte>{});
    const auto nothing = [](int) { return Part(std::span<std::byte>{}); };
    all ? message::write_all_gather(schedule, context, &own, std::cref(*all))
        : message::write_all_gather(schedule, context, &own, nothing);
  });
}

}  // namespace

Status Communicator::barrier() noexcept { return message::barrier(*context_); }
Request Communicator::start_barrier() noexcept { return message::start_barrier(*context_); }

Status Communicator::broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept {
  return message::broadcast(*context_, Part(bytes), root.value());
}
Request Communicator::start_broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept {
  return message::start_broadcast(*context_, Part(bytes), root.value());
}

Status Communicator::all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  return message::all_reduce(*context_, values.data(), values, reduction);
}
Request Communicator::start_all_reduce_bytes(std::span<std::byte> values, Reduction reduction) noexcept {
  return message::start_all_reduce(*context_, values.data(), values, reduction);
}

Request Communicator::start_reduce_bytes(std::span<std::byte> values, Rank root, Reduction reduction) noexcept {
  if (!is_rank(*context_, root.value())) return refuse(*context_);
  return start_collective(*context_, job::Wait::reduce, [&](Schedule& schedule) {
    message::write_reduce(schedule, *context_, values, values.data(), reduction, root.value());
  });
}

Request Communicator::start_scan_bytes(std::span<std::byte> values, Reduction reduction, bool exclusive) noexcept {
  return start_collective(*context_, job::Wait::scan, [&](Schedule& schedule) {
    message::write_scan(schedule, *context_, values, values.data(), reduction, exclusive);
  });
}

Request Communicator::start_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                         Rank root) noexcept {
  return gather_parts(*context_, mine, Places::equal(*context_, all, mine.size()), root.value());
}

Request Communicator::start_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Counts counts,
                                           Rank root) noexcept {
  const auto places = try_places([&] { return Places::counted(*context_, all, counts); });
  return gather_parts(*context_, mine, places, root.value());
}

Request Communicator::start_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine,
                                          Rank root) noexcept {
  return scatter_parts(*context_, Places::equal(*context_, all, mine.size()), mine, root.value());
}

Request Communicator::start_scatter_v_bytes(std::span<const std::byte> all, Counts counts, std::span<std::byte> mine,
                                            Rank root) noexcept {
  const auto places = try_places([&] { return Places::counted(*context_, all, counts); });
  return scatter_parts(*context_, places, mine, root.value());
}

Request Communicator::start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) noexcept {
  return gather_all_parts(*context_, mine, Places::equal(*context_, all, mine.size()));
}

Request Communicator::start_all_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                               Counts counts) noexcept {
  auto places = try_places([&] { return Places::counted(*context_, all, counts); });
  if (places && counts.of_ranks[rank().index()] * counts.element_bytes != mine.size()) places.reset();
  return gather_all_parts(*context_, mine, places);
}

Request Communicator::start_all_to_all_bytes(std::span<const std::byte> sent, std::span<std::byte> received,
                                             std::size_t element_bytes) noexcept {
  const std::size_t part = sent.size() / element_bytes / static_cast<std::size_t>(size()) * element_bytes;
  const bool fits = part * static_cast<std::size_t>(size()) == sent.size() && received.size() >= sent.size();
  if (!fits) return exchange_parts(*context_, std::nullopt, std::nullopt);
  return exchange_parts(*context_, Places::equal(*context_, sent, part),
                        Places::equal(*context_, received.first(sent.size()), part));
}

Request Communicator::start_all_to_all_v_bytes(std::span<const std::byte> sent, Counts sent_counts,
                                               std::span<std::byte> received, Counts received_counts) noexcept {
  const auto sent_places = try_places([&] { return Places::counted(*context_, sent, sent_counts); });
  const auto received_places = try_places([&] { return Places::counted(*context_, received, received_counts); });
  return exchange_parts(*context_, sent_places, received_places);
}

Status Communicator::gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Rank root) noexcept {
  return start_gather_bytes(mine, all, root).wait().status;
}

}  // namespace tonari
