#include "predict/operations.hpp"

#include "message/collectives.hpp"
#include "message/exchanges.hpp"
#include "message/reductions.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace tonari::bench::predict {

namespace {

using message::Members;
using message::Part;
using message::Rounds;

// A reduction of doubles that commutes. It is recorded, but never called.
const detail::Reduction sum{.fold = [](void*, const void*, std::size_t, const void*) {},
                            .element_bytes = sizeof(double),
                            .operation = nullptr,
                            .into = detail::Into::any};

// Records one collective of one rank. Nothing reads or writes `buffer`.
void record_one(Collective collective, std::span<std::byte> buffer, Rounds& rounds, const Members& members) {
  const auto any_part = [&](int) { return Part(buffer); };
  switch (collective) {
    case Collective::barrier: return message::write_barrier(rounds, members);
    case Collective::broadcast: return message::write_broadcast(rounds, members, Part(buffer), 0);
    case Collective::all_reduce: return message::write_all_reduce(rounds, members, buffer, buffer.data(), sum);
    case Collective::all_to_all: return message::write_all_to_all(rounds, members, any_part, any_part);
  }
}

}  // namespace

std::string_view name_of(Collective collective) noexcept {
  switch (collective) {
    case Collective::barrier: return "barrier";
    case Collective::broadcast: return "broadcast";
    case Collective::all_reduce: return "all-reduce";
    case Collective::all_to_all: return "all-to-all";
  }
  return "";
}

Programs record(Collective collective, std::size_t bytes, const Shape& shape, const LocalCosts& costs, int repeats) {
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const auto groups = shape.groups();
  Programs programs;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    Rounds rounds;
    record_one(collective, {memory.get(), bytes}, rounds, Members(groups, rank));
    programs.begin_rank();
    for (int i = 0; i < repeats; ++i) programs.add(rounds, costs);
  }
  return programs;
}

Outcome predict(Collective collective, std::size_t bytes, const Shape& shape, const Parameters& parameters) {
  if (collective == Collective::all_to_all && shape.ranks > simulated_all_to_all_ranks_max) {
    return symmetric_all_to_all(bytes, shape, parameters);
  }
  const LocalCosts costs{parameters.copy_us_per_byte, parameters.fold_us_per_byte};
  return simulate(parameters, shape, record(collective, bytes, shape, costs));
}

Outcome symmetric_all_to_all(std::size_t bytes, const Shape& shape, const Parameters& parameters) {
  const auto local = std::min(shape.ranks, shape.ranks_per_host);  // on the host of rank 0, itself included
  const MessageCost near = parameters.in_host.at(bytes);
  const MessageCost far = parameters.between_hosts.at(bytes);
  const double link_us = local * parameters.between_hosts.link_us(far);
  const double handshake_us = [&](const Costs& costs) {
    return costs.is_eager(bytes) ? 0 : costs.points().front().latency_us;
  }(parameters.between_hosts);
  double now_us = 0;
  double out_free_us = 0;
  double link_free_us = 0;
  Outcome outcome;
  for (int first = 1; first < shape.ranks; first += message::peers_a_round, ++outcome.rounds) {
    const int end = std::min(shape.ranks, first + message::peers_a_round);
    std::vector<std::pair<double, double>> arrivals;  // time, and the time of its receive
    for (int distance = first; distance < end; ++distance) {
      const bool is_near = distance < local;
      const MessageCost& cost = is_near ? near : far;
      now_us += cost.send_us;
      double leaves_us = std::max(now_us + (is_near ? 0 : handshake_us), out_free_us);
      if (!is_near) {
        leaves_us = std::max(leaves_us, link_free_us);
        link_free_us = leaves_us + link_us;
      }
      out_free_us = leaves_us + cost.gap_us;
      arrivals.emplace_back(leaves_us + cost.latency_us - (is_near ? 0 : handshake_us), cost.receive_us);
    }
    if (first == 1) now_us += static_cast<double>(bytes) * parameters.copy_us_per_byte;
    std::ranges::sort(arrivals);
    for (const auto& [time_us, receive_us] : arrivals) now_us = std::max(now_us, time_us) + receive_us;
  }
  const auto ranks = static_cast<std::uint64_t>(shape.ranks);
  outcome.time_us = now_us;
  outcome.messages = ranks * (ranks - 1);
  for (int host = 0; host < shape.hosts(); ++host) {
    const auto here =
        static_cast<std::uint64_t>(std::min(shape.ranks_per_host, shape.ranks - host * shape.ranks_per_host));
    outcome.messages_between_hosts += here * (ranks - here);
  }
  return outcome;
}

}  // namespace tonari::bench::predict
