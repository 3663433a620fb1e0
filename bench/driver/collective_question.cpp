#include "driver/collective_question.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tonari::bench::driver {

void CollectiveQuestion::add_options(CLI::App& command, BenchOptions& options) {
  command.add_option("-n,--ranks", ranks_, "Numbers of ranks, one after the other, each from 2")
      ->type_name("LIST")
      ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
      ->group("Ranks");
  if (!collective_.sizes) return;
  add_sizes(command, options, collective_.sizes->meaning, collective_.sizes->usual);
}

std::vector<Metric> CollectiveQuestion::metrics() const {
  std::vector<Metric> all;
  for (const auto metric : collective_.metrics) all.push_back({metric, Better::low});
  return all;
}

std::vector<int> CollectiveQuestion::ranks() const {
  return ranks_ ? parse_ascending("--ranks", *ranks_, 2, job::ranks_per_host_max) : usual_ranks();
}

std::vector<std::size_t> CollectiveQuestion::sizes(const BenchOptions& options) const {
  const auto& [meaning, usual, quick, multiple_of] = *collective_.sizes;
  auto all = parse_sizes("--sizes", options.sizes.value_or(std::string(options.quick ? quick : usual)));
  const auto wrong = std::ranges::find_if(all, [&](auto size) { return size % multiple_of != 0; });
  if (wrong == all.end()) return all;
  throw SetupError(
      fmt::format("--sizes: {} bytes are not a whole number of doubles; choose multiples of {}", *wrong, multiple_of));
}

std::vector<Launch> CollectiveQuestion::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  Ask ask{std::string(name()), options.launch, {fmt::format("--budget-us={}", budget_us(options))}};
  if (collective_.sizes) ask.arguments.push_back(worker_option("sizes", sizes(options)));
  std::vector<Launch> launches;
  for (const int ranks : ranks()) {
    ask.launch.ranks = ranks;
    launches.push_back({ask, systems, fmt::format("ranks {}", ranks)});
  }
  return launches;
}

nlohmann::ordered_json CollectiveQuestion::parameters(const BenchOptions& options) const {
  nlohmann::ordered_json used{{"ranks", ranks()}, {"budget_us", budget_us(options)}};
  if (collective_.sizes) used["sizes"] = sizes(options);
  return used;
}

}  // namespace tonari::bench::driver
