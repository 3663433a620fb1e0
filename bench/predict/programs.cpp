#include "predict/programs.hpp"

#include <bit>
#include <numeric>

namespace tonari::bench::predict {

message::HostGroups Shape::groups() const {
  if (hosts() == 1) return message::HostGroups::each_alone(ranks);
  std::vector<std::size_t> group_of(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    group_of[static_cast<std::size_t>(rank)] = static_cast<std::size_t>(host_of(rank));
  }
  return message::HostGroups(std::move(group_of));
}

Programs::Step Programs::Step::message(Kind kind, int peer, std::size_t bytes) noexcept {
  return {kind, static_cast<std::uint32_t>(bytes), static_cast<std::uint32_t>(peer)};
}

Programs::Step Programs::Step::work(double us) noexcept {
  return {Kind::work, 0, std::bit_cast<std::uint32_t>(static_cast<float>(us))};
}

double Programs::Step::us() const noexcept { return static_cast<double>(std::bit_cast<float>(value_)); }

void Programs::add_messages(const message::Rounds::Round& round) {
  for (const auto& message : round.messages) {
    message.is_send ? send(message.peer, message.count) : receive(message.peer, message.count);
  }
}

void Programs::add(const message::Rounds& rounds, const LocalCosts& costs) {
  const auto cost_of = [&](const std::vector<message::Rounds::Local>& locals) {
    double us = 0;
    for (const auto& local : locals) {
      const bool folds = local.reduction.fold != nullptr;
      us += static_cast<double>(local.bytes) * (folds ? costs.fold_us_per_byte : costs.copy_us_per_byte);
    }
    return us;
  };
  for (const auto& round : rounds.rounds()) {
    add_messages(round);
    work(cost_of(round.meanwhile));
    if (!round.messages.empty()) wait();
    work(cost_of(round.locals));
  }
}

}  // namespace tonari::bench::predict
