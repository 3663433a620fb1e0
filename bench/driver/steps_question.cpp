#include "driver/steps_question.hpp"

#include "cli/options.hpp"
#include "cli/table.hpp"

#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace tonari::bench::driver {

namespace {

using Way = StepsCase::Way;

constexpr int rows_max = 100'000;

std::vector<std::string> names_of(const std::vector<StepsCase>& cases) {
  std::vector<std::string> names;
  for (const auto& one : cases) names.push_back(one.name);
  return names;
}

/// Returns the heading of a column: a case, or a case with a rival.
std::string column_of(const SeriesName& name) {
  if (name.system == "tonari" || name.system == name.label) return name.label;
  const std::string_view over = "tonari over ";
  if (name.system.starts_with(over)) return fmt::format("{} over {}", name.label, name.system.substr(over.size()));
  auto system = name.system;
  const std::string_view long_name = " thread-multiple";
  if (const auto at = system.find(long_name); at != system.npos) system.replace(at, long_name.size(), " mt");
  return fmt::format("{} {}", name.label, system);
}

}  // namespace

void StepsQuestion::add_options(CLI::App& command, BenchOptions&) {
  command.add_option("-n,--ranks", ranks_, "Numbers of ranks (openmp: of threads), one after the other")
      ->type_name("LIST")
      ->default_str(fmt::format("{}", fmt::join(ranks(), ",")))
      ->group("Ranks");
  const StepsSize size = this->size();
  auto* const option = command.add_option(
      "--" + size.name, size_, fmt::format("{} (default: {}, with --quick {})", size.meaning, size.usual, size.quick));
  option->group("The question");
  if (size.choices.empty()) {
    option->type_name("N")->transform(cli::whole_number("a number of rows", 1, rows_max));
  } else {
    option->type_name(fmt::format("{}", fmt::join(size.choices, "|")))->check(cli::one_of(size.choices));
  }
  command
      .add_option("--cases", cases_,
                  fmt::format("Among {} (default: {})", fmt::join(names_of(known_cases()), ", "), usual_cases()))
      ->type_name("LIST")
      ->group("The question");
}

std::vector<StepsCase> StepsQuestion::known_cases() const {
  std::vector<StepsCase> cases{{"message", Way::message},
                               {"share", Way::share},
                               {"share-apart", Way::share, true, {"--named=1"}},
                               {"share-apart-unnamed", Way::share, true}};
  std::ranges::move(own_cases(), std::back_inserter(cases));
  cases.push_back({"openmp", Way::openmp});
  return cases;
}

std::string StepsQuestion::usual_cases() const {
  auto cases = known_cases();
  std::erase_if(cases, [](const StepsCase& one) { return !one.usual; });
  return fmt::format("{}", fmt::join(names_of(cases), ","));
}

std::string StepsQuestion::size_asked(bool quick) const {
  const StepsSize size = this->size();
  return size_.value_or(quick ? size.quick : size.usual);
}

std::vector<int> StepsQuestion::ranks() const {
  return parse_ascending("--ranks", ranks_.value_or("1,2"), 1, job::ranks_per_host_max);
}

Ask StepsQuestion::ask(const BenchOptions& options, const StepsCase& which, int ranks) const {
  Ask ask{std::string(name()), options.launch, which.arguments};
  const bool threads = which.way == Way::openmp;
  ask.launch.ranks = threads ? 1 : ranks;
  if (threads) {
    if (ranks <= cli::usable_cores() && ask.launch.bind != "none")
      ask.launch.environment.emplace_back("OMP_PROC_BIND=true");
    ask.launch.bind = "none";
    ask.arguments.push_back(fmt::format("--threads={}", ranks));
  }
  if (which.way != Way::message) {
    if (!which.apart) {
      ask.launch.apart.clear();
      ask.launch.network.clear();
    } else if (ask.launch.apart.empty()) {
      ask.launch.apart = "memory";
    }
  }
  constexpr std::string_view ways[]{"message", "share", "guarded", "openmp"};
  ask.arguments.insert(ask.arguments.end(), {fmt::format("--case={}", which.name),
                                             fmt::format("--way={}", ways[static_cast<std::size_t>(which.way)]),
                                             fmt::format("--{}={}", size().name, size_asked(options.quick)),
                                             fmt::format("--budget-us={}", budget_us(options))});
  return ask;
}

std::vector<Launch> StepsQuestion::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (without(systems, Family::ucx).size() != systems.size()) {
    throw SetupError(fmt::format("--rival ucx: ucx_perftest cannot be asked {}", name()));
  }
  const auto known = known_cases();
  std::vector<Launch> launches;
  for (const int ranks : this->ranks()) {
    for (const auto& chosen : parse_choices("--cases", cases(), names_of(known))) {
      const auto& which = *std::ranges::find(known, chosen, &StepsCase::name);
      std::vector<System> asked = systems;
      if (which.way != Way::message) {
        std::erase_if(asked, [](const System& system) { return system.family != Family::tonari; });
      }
      launches.push_back({ask(options, which, ranks), asked, fmt::format("{}, ranks {}", which.name, ranks)});
    }
  }
  return launches;
}

nlohmann::ordered_json StepsQuestion::parameters(const BenchOptions& options) const {
  return {{"ranks", ranks()},
          {size().name, size_asked(options.quick)},
          {"cases", cases()},
          {"budget_us", budget_us(options)}};
}

std::string StepsQuestion::tell(const Results& results) const {
  std::vector<std::string> heading{"ranks"};
  std::vector<const Series*> columns;
  std::set<double> all_ranks;
  for (const auto& series : results.series()) {
    if (series.name.metric != "rate") continue;
    columns.push_back(&series);
    heading.push_back(column_of(series.name));
    for (const auto& point : series.points) all_ranks.insert(point.first);
  }
  if (columns.empty()) return "\nnothing was measured\n";
  std::vector<std::vector<std::string>> rows{heading};
  for (const double ranks : all_ranks) {
    auto& row = rows.emplace_back();
    row.push_back(fmt::format("{:.0f}", ranks));
    for (const auto* column : columns) {
      const auto said = column->summary(ranks);
      row.push_back(said.n == 0 ? "-" : format_number(said.median));
    }
  }
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  return fmt::format("\nrate, {}, median\n{}\nresults of {} runs, compared with one rank: {}\n",
                     columns.front()->name.unit, cli::format_table(rows), results.checks().size(),
                     passed ? "the same" : "WRONG");
}

}  // namespace tonari::bench::driver
