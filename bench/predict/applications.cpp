#include "predict/applications.hpp"

#include "message/exchanges.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace tonari::bench::predict {

namespace {

using message::Members;
using message::Rounds;

double rate_of(const std::optional<double>& rate, std::string_view name) {
  if (rate) return *rate;
  throw SetupError(
      fmt::format("--operations {}: the parameters have no rate of it; run `tonari bench fit` again", name));
}

void check_ranks(const Shape& shape, int parts, std::string_view name, std::string_view what) {
  if (shape.ranks <= parts) return;
  throw SetupError(
      fmt::format("--operations {}: its {} {} cannot be dealt to {} ranks", name, parts, what, shape.ranks));
}

// One rank's factorisation, as Factorisation::run() of the benchmark.
class LuRank {
 public:
  LuRank(const LuSize& size, const Members& members, double gflops, std::span<std::byte> memory, Programs& programs)
      : size_(size), members_(members), us_per_operation_(1e-3 / gflops), memory_(memory), programs_(programs) {}

  void record() {
    programs_.begin_rank();
    obtain(0);
    for (int panel = 0; panel < size_.panels(); ++panel) {
      finish();
      const int next = panel + 1;
      if (owns(next)) work(update_operations(panel, width(next)));
      if (next < size_.panels()) obtain(next);
      work(update_operations(panel, columns_from(panel + 2)));
    }
  }

 private:
  [[nodiscard]] bool owns(int panel) const noexcept {
    return panel < size_.panels() && panel % members_.size() == members_.rank();
  }
  [[nodiscard]] int width(int panel) const noexcept { return std::min(size_.block, size_.order - panel * size_.block); }
  [[nodiscard]] double rows(int panel) const noexcept { return size_.order - panel * size_.block; }
  // Number of this rank's columns in `panel` and later ones.
  [[nodiscard]] int columns_from(int panel) const noexcept {
    const int ranks = members_.size();
    const int first = panel + (members_.rank() - panel % ranks + ranks) % ranks;
    if (first >= size_.panels()) return 0;
    const int count = (size_.panels() - 1 - first) / ranks + 1;
    const int last = first + (count - 1) * ranks;
    return (count - 1) * size_.block + width(last);
  }
  [[nodiscard]] double factor_operations(int panel) const noexcept {
    const double w = width(panel);
    return w * w * (rows(panel) - w / 3);
  }
  [[nodiscard]] double update_operations(int panel, int columns) const noexcept {
    const double w = width(panel);
    return columns * w * (w + 2 * (rows(panel) - w));
  }
  void work(double operations) { programs_.work(operations * us_per_operation_); }

  void obtain(int panel) {
    if (owns(panel)) work(factor_operations(panel));
    const auto bytes =
        sizeof(double) * static_cast<std::size_t>(width(panel)) * (1 + static_cast<std::size_t>(rows(panel)));
    broadcast_.emplace();
    message::write_broadcast(*broadcast_, members_, message::Part(memory_.first(bytes)), panel % members_.size());
    programs_.add_messages(broadcast_->rounds().front());
  }

  void finish() {
    const auto& rounds = broadcast_->rounds();
    if (!rounds.front().messages.empty()) programs_.wait();
    for (std::size_t i = 1; i < rounds.size(); ++i) {
      programs_.add_messages(rounds[i]);
      if (!rounds[i].messages.empty()) programs_.wait();
    }
  }

  const LuSize& size_;
  Members members_;
  double us_per_operation_;
  std::span<std::byte> memory_;
  Programs& programs_;
  std::optional<Rounds> broadcast_;  // of the next panel
};

}  // namespace

Outcome predict_lu(const LuSize& size, const Shape& shape, const Parameters& parameters) {
  check_ranks(shape, size.panels(), "lu", "panels");
  const double gflops = rate_of(parameters.lu_gflops, "lu");
  const std::size_t bytes =
      sizeof(double) * static_cast<std::size_t>(size.block) * (1 + static_cast<std::size_t>(size.order));
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const auto groups = shape.groups();
  Programs programs;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    LuRank(size, Members(groups, rank), gflops, {memory.get(), bytes}, programs).record();
  }
  return simulate(parameters, shape, std::move(programs));
}

Outcome predict_himeno(const HimenoSize& size, const Shape& shape, const Parameters& parameters) {
  constexpr int steps = 10;
  check_ranks(shape, size.inner_planes(), "himeno", "planes");
  const double plane_us = size.operations_per_plane() / rate_of(parameters.himeno_mflops, "himeno");
  const double copy_us = std::min(plane_us, static_cast<double>(size.plane_bytes()) * parameters.copy_us_per_byte);
  Programs programs;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int planes = size.inner_planes() / shape.ranks + (rank < size.inner_planes() % shape.ranks ? 1 : 0);
    const int copied_meanwhile = std::max(0, planes - 2);
    programs.begin_rank();
    for (int step = 0; step < steps; ++step) {
      programs.work(planes * plane_us - copied_meanwhile * copy_us);
      for (const int neighbour : {rank - 1, rank + 1}) {
        if (neighbour < 0 || neighbour >= shape.ranks) continue;
        programs.receive(neighbour, size.plane_bytes());
        programs.send(neighbour, size.plane_bytes());
      }
      programs.work(copied_meanwhile * copy_us);
      if (shape.ranks > 1) programs.wait();
    }
  }
  Outcome outcome = simulate(parameters, shape, std::move(programs));
  outcome.time_us /= steps;
  outcome.rounds /= steps;
  outcome.messages /= steps;
  outcome.messages_between_hosts /= steps;
  return outcome;
}

}  // namespace tonari::bench::predict
