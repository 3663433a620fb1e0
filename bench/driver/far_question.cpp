#include "driver/far_question.hpp"

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "driver/registry.hpp"
#include "pager/page.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace tonari::bench::driver {

namespace {

constexpr std::uint64_t data_bytes_min = 4 << 20;  // less would barely use far memory
constexpr std::uint64_t data_bytes_max = std::uint64_t{1} << 44;
constexpr std::uint64_t side_max = 1 << 17;
constexpr int remote_percent_max =
    50;  // to push the data out, the program writes other memory of the size of the local part

/// A table of one case: one column per system, one row per x.
class FarTable {
 public:
  FarTable(const Results& results, std::string label, std::string_view metric, bool is_rate)
      : label_(std::move(label)), is_rate_(is_rate) {
    for (const auto& series : results.series()) {
      if (series.name.metric != metric || series.name.label != label_) continue;
      series_.push_back(&series);
      for (const auto& point : series.points) all_x_.insert(point.first);
      if (series.name.system == "local") local_ = series.summary(all_local).median;
    }
  }

  static constexpr double all_local = 100;

  /// Entries are the median, and its share of the speed in local memory.
  [[nodiscard]] std::string text() const {
    return text([this](const Series& series, double x) {
      const double median = series.summary(x).median;
      if (local_ == 0 || median == 0 || series.name.system == "local") return format_number(median);
      return fmt::format("{} ({:.3f})", format_number(median), is_rate_ ? median / local_ : local_ / median);
    });
  }

  /// Entries are the results of `entry(series, x)`.
  template <class Entry>
  [[nodiscard]] std::string text(const Entry& entry) const {
    std::vector<std::vector<std::string>> rows(1);
    rows[0].push_back(series_[0]->name.x);
    for (const auto* series : series_) rows[0].push_back(series->name.system);
    for (auto x = all_x_.rbegin(); x != all_x_.rend(); ++x) {
      auto& row = rows.emplace_back();
      row.push_back(fmt::format("{:.0f}", *x));
      for (const auto* series : series_) row.push_back(series->points.contains(*x) ? entry(*series, *x) : "-");
    }
    return cli::format_table(rows);
  }

  [[nodiscard]] const std::string& unit() const { return series_[0]->name.unit; }

 private:
  std::string label_;
  bool is_rate_;
  std::vector<const Series*> series_;
  std::set<double> all_x_;
  double local_ = 0;
};

std::vector<std::string> labels_of(const Results& results, std::string_view metric) {
  std::vector<std::string> labels;
  for (const auto& series : results.series()) {
    if (series.name.metric != metric || std::ranges::find(labels, series.name.label) != labels.end()) continue;
    labels.push_back(series.name.label);
  }
  return labels;
}

}  // namespace

std::string FarQuestion::rivals() const {
  const auto with_ucx =
      names_of_benchmarks([](const Question& question) { return question.is_of_far_memory() && question.has_ucx(); });
  return fmt::format(
      "swap-zram and swap-file, the kernel's swapping, in a memory cgroup of the same size; mmap, the data as a file "
      "that is mapped, in such a cgroup. They need root, and switch swap on for the whole machine meanwhile. Of {} "
      "also "
      "ucx: what ucx_perftest sends over the link; with --apart network and --interface",
      fmt::join(with_ucx, " and "));
}

void FarQuestion::add_options(CLI::App& command, BenchOptions&) {
  const auto usual = [&](std::uint64_t size) {
    return kind_.counts_bytes ? format_bytes(static_cast<double>(size)) : std::to_string(size);
  };
  command
      .add_option_function<std::uint64_t>(
          "--size", [this](std::uint64_t size) { size_ = size; },
          fmt::format("{} (default: {}, with --quick {})", kind_.size_help, usual(kind_.size), usual(kind_.quick_size)))
      ->type_name(kind_.counts_bytes ? "SIZE" : "N")
      ->transform(kind_.counts_bytes ? cli::size_in_bytes() : cli::whole_number("a length", 32, side_max))
      ->group("The question");
  command
      .add_option("--local", local_,
                  "Per cent of the data that are local, each from 1 to 100 (default: 10,20,50,80,100, with --quick "
                  "20,100)")
      ->type_name("LIST")
      ->group("The question");
  if (!kind_.times_each_access) {
    command
        .add_option("--threads", threads_,
                    "Numbers of OpenMP threads, one after the other (default: 1, 2, 4 ... as many as there are cores, "
                    "with --quick 1)")
        ->type_name("LIST")
        ->group("The question");
  }
  if (kind_.has_remote_case) {
    command
        .add_option("--cases", cases_,
                    "threads: passes in a row. remote: before each pass all of the arrays is pushed out; where up to "
                    "50 % are local")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--interface", interface_,
                    "Also print the bytes that this network interface of this host receives and sends in a pass")
        ->type_name("NAME")
        ->group("The question");
  }
  add_far_launch_options(command, launch_);
  command.add_option("--folder", folder_, "Where swap files and mapped files are made: on a disk")
      ->type_name("PATH")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str()
      ->group("Memory");
}

void add_far_launch_options(CLI::App& command, FarLaunch& launch) {
  command
      .add_option("--servers", launch.servers, "How many processes lend memory, or their hosts, as for `tonari far`")
      ->type_name("N|HOSTS")
      ->group("Memory");
  command
      .add_option("--memory", launch.memory,
                  "How much each server lends, as for `tonari far`; over RDMA, servers pin all that they lend")
      ->type_name("SIZE")
      ->transform(cli::size_in_units_of(pager::block_bytes))
      ->group("Memory");
  command
      .add_option("--faults", launch.faults, "The threads or the process that serve page faults, as for `tonari far`")
      ->type_name("auto|keeper|self")
      ->check(cli::one_of({"auto", "keeper", "self"}))
      ->group("Memory");
}

std::string or_default(const std::string& value) { return value.empty() ? "default" : value; }

std::vector<int> FarQuestion::threads(const BenchOptions& options) const {
  if (kind_.times_each_access) return {1};
  if (threads_) return parse_ascending("--threads", *threads_, 1, 4096);
  std::vector<int> usual{1};
  if (options.quick) return usual;
  while (usual.back() * 2 < cli::usable_cores()) usual.push_back(usual.back() * 2);
  if (cli::usable_cores() > 1) usual.push_back(cli::usable_cores());
  return usual;
}

Ask FarQuestion::ask(const BenchOptions& options) const {
  Ask ask{std::string(kind_.name), options.launch, {}};
  ask.arguments = {fmt::format("--size={}", size(options)), fmt::format("--budget-s={}", budget_s(options))};
  if (!interface_.empty()) ask.arguments.push_back("--interface=" + interface_);
  ask.far = FarAsk{.local_percent = 100,
                   .data_bytes = kind_.data_bytes(size(options)),
                   .launch = launch_,
                   .folder = std::filesystem::absolute(folder_)};
  return ask;
}

/// Plans the launches of one case, with all-local memory first. At 100 per cent the kernel's methods are left out: they
/// would have nothing to do.
void FarQuestion::plan_case(const Ask& asked, int percent_max, const BenchOptions& options,
                            const std::vector<System>& systems, std::vector<Launch>& to) const {
  const auto& what = asked.arguments.back();
  to.push_back({asked, {{Family::local, false}}, what});
  for (const int percent : local(options)) {
    if (percent > percent_max) continue;
    auto far = asked;
    far.far->local_percent = percent;
    std::vector<System> asks;
    for (const System& system : systems) {
      const bool is_ours = system.family == Family::tonari;
      if (is_ours || percent < 100) asks.push_back(system);
      if (is_ours && kind_.times_each_access)
        asks.push_back({Family::tonari_core, false});  // the program has one thread
    }
    to.push_back({std::move(far), std::move(asks), fmt::format("{} local {}", what, percent)});
  }
}

std::vector<Launch> FarQuestion::plan(const BenchOptions& options, const std::vector<System>& asked) const {
  check_size(options);
  std::vector<Launch> launches;
  const auto systems = kind_.has_remote_case ? without(asked, Family::ucx) : asked;
  if (systems.size() != asked.size()) {
    if (interface_.empty() || options.launch.apart != "network") {
      throw SetupError("--rival ucx: it measures the link; add --apart network and --interface");
    }
    launches.push_back({ask(options), {{Family::ucx, false}}, "link"});
  }
  for (const auto& what : cases()) {
    if (what == "remote") {
      auto remote = ask(options);
      remote.arguments.emplace_back("--case=remote");
      plan_case(remote, remote_percent_max, options, systems, launches);
      continue;
    }
    for (const int threads : threads(options)) {
      auto several = ask(options);
      several.arguments.push_back(fmt::format("--threads={}", threads));
      plan_case(several, 100, options, systems, launches);
    }
  }
  return launches;
}

void FarQuestion::check_size(const BenchOptions& options) const {
  const auto n = size(options);
  if (n % kind_.size_multiple != 0) {
    throw SetupError(fmt::format("--size {}: it takes {}", n, kind_.size_multiple_text));
  }
  if (kind_.data_bytes(n) < data_bytes_min || kind_.data_bytes(n) > data_bytes_max) {
    throw SetupError(fmt::format("--size {}: {} of data; it takes from {} to {}", n,
                                 format_bytes(static_cast<double>(kind_.data_bytes(n))), format_bytes(data_bytes_min),
                                 format_bytes(data_bytes_max)));
  }
}

nlohmann::ordered_json FarQuestion::parameters(const BenchOptions& options) const {
  nlohmann::ordered_json all{{"size", size(options)},
                             {"data_bytes", kind_.data_bytes(size(options))},
                             {"local", local(options)},
                             {"threads", threads(options)},
                             {"budget_s", budget_s(options)},
                             {"servers", or_default(launch_.servers)},
                             {"memory", or_default(launch_.memory)},
                             {"faults", or_default(launch_.faults)}};
  if (kind_.has_remote_case) all["cases"] = cases();
  return all;
}

std::string FarQuestion::tell(const Results& results) const {
  std::string text;
  for (const auto& label : labels_of(results, kind_.metric)) {
    const FarTable table(results, label, kind_.metric, kind_.is_rate);
    text += fmt::format("\n{}: {}, {}, median (share of the speed that `local` has)\n{}", label, kind_.metric,
                        table.unit(), table.text());
    if (kind_.times_each_access) text += tell_latency(results, label);
  }
  if (!interface_.empty()) text += tell_wire(results);
  if (!kind_.times_each_access) text += tell_speed_up(results);
  const bool passed = std::ranges::all_of(results.checks(), &Check::passed);
  return text +
         fmt::format("\nresults of {} runs: {}\n", results.checks().size(), passed ? "all as they should be" : "WRONG");
}

std::string FarQuestion::tell_latency(const Results& results, const std::string& label) {
  const FarTable table(results, label, "latency", false);
  return fmt::format("\n{}: latency, {}, median / 99 %\n{}", label, table.unit(),
                     table.text([](const Series& series, double x) {
                       const auto said = series.summary(x);
                       return fmt::format("{} / {}", format_number(said.median), format_number(said.p99));
                     }));
}

/// Prints the bytes that the interface carried, as a share of the rate of UCX's own measurement.
std::string FarQuestion::tell_wire(const Results& results) const {
  double link = 0;
  std::string text;
  for (const auto& series : results.series()) {
    if (series.name.label == "link") link = series.summary(FarTable::all_local).median;
  }
  for (const auto& label : labels_of(results, "wire")) {
    const FarTable table(results, label, "wire", true);
    text += fmt::format("\n{}: wire on {}, {}, median{}\n{}", label, interface_, table.unit(),
                        link == 0 ? "" : " (share of the link)", table.text([&](const Series& series, double x) {
                          const double median = series.summary(x).median;
                          if (link == 0 || label == "link") return format_number(median);
                          return fmt::format("{} ({:.3f})", format_number(median), median / link);
                        }));
  }
  return text;
}

/// Prints figures 1 to 3 of the DLM paper, one line per share, and figure 4, the time of the base case.
std::string FarQuestion::tell_speed_up(const Results& results) const {
  const auto median = [&](std::string_view system, const std::string& label, double x) {
    for (const auto& series : results.series()) {
      if (series.name.system == system && series.name.label == label && series.name.metric == kind_.metric) {
        return series.summary(x).median;
      }
    }
    return 0.0;
  };
  const double base = median("local", "threads=1", 100);
  if (base == 0) return "";
  const auto speed_up = [&](double value) {
    return value == 0 ? "-" : fmt::format("{:.2f}", kind_.is_rate ? value / base : base / value);
  };
  std::set<double> percents;
  for (const auto& series : results.series()) {
    if (series.name.system != "tonari" || series.name.label == "remote") continue;
    for (const auto& point : series.points) percents.insert(point.first);
  }
  std::vector<std::vector<std::string>> rows{{"threads", "local"}};
  for (const double percent : percents) rows[0].push_back(fmt::format("{:.0f} %", percent));
  for (const auto& label : labels_of(results, kind_.metric)) {
    if (label == "remote") continue;
    auto& row = rows.emplace_back();
    row.push_back(label.substr(label.find('=') + 1));
    row.push_back(speed_up(median("local", label, 100)));
    for (const double percent : percents) row.push_back(speed_up(median("tonari", label, percent)));
  }
  return fmt::format("\nspeed-up of tonari over one thread in local memory, which {} {} {}\n{}",
                     kind_.is_rate ? "reaches" : "takes", format_number(base), kind_.is_rate ? "GB/s" : "s",
                     cli::format_table(rows));
}

}  // namespace tonari::bench::driver
