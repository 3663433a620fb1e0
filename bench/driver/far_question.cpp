// `tonari bench stream, matmul, stencil, fft3d, fault`: programs that know nothing of tonari (bench/far), in memory of
// which so many per cent are local: by `tonari far`, by the kernel's own means, and all of it. How they are started, in
// turn, and how the answers are told.

#include "cli/options.hpp"
#include "cli/table.hpp"
#include "driver/question.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>

namespace tonari::cli {

namespace {

/// What one of these questions is, beside the others.
struct FarKind {
  std::string_view name;
  std::string_view asks;
  std::string_view metric;  ///< What is told in tables.
  bool is_rate;             ///< More of it is better.
  bool counts_bytes;        ///< --size is the data in bytes, not a length of side.
  std::string_view size_help;
  std::uint64_t size;
  std::uint64_t quick_size;
  std::uint64_t (*data_bytes)(std::uint64_t size);
  double budget_s;
  double quick_budget_s;
  std::string_view examples;
};

constexpr std::uint64_t data_bytes_min = 4 << 20;  // less is hardly taken for far memory
constexpr std::uint64_t data_bytes_max = std::uint64_t{1} << 44;
constexpr std::uint64_t side_max = 1 << 17;
constexpr int remote_percent_max = 50;  // what is pushed out needs as much memory beside it as may be local

constexpr FarKind stream_kind{
    "stream",
    "how fast is STREAM's triad over arrays of which a part is local?",
    "triad",
    true,
    true,
    "The three arrays together, in bytes, with K, M, G, T",
    768 << 20,
    96 << 20,
    [](std::uint64_t bytes) { return bytes; },
    10,
    0.5,
    "Prints GB/s as STREAM counts them, the median of all passes of all rounds but the first pass of each program, and "
    "in brackets what share of the speed in local memory that is. Case remote: nothing of the arrays is local when a "
    "pass begins, so all of it is fetched once; one thread.\n"
    "\n"
    "Examples:\n"
    "  tonari bench stream --quick\n"
    "  tonari bench stream --local 20 --rival swap-zram,swap-file,mmap --json stream.json\n"
    "  tonari bench stream --cases remote --apart network --network tcp --interface lo --rival ucx"};

constexpr FarKind matmul_kind{
    "matmul",
    "how long does a blocked matrix product take whose matrices are partly local?",
    "time",
    false,
    false,
    "The matrices' order, a multiple of 16; the DLM paper's is 4096",
    3072,
    512,
    [](std::uint64_t n) { return 3 * n * n * 8; },
    0,
    0,
    "Prints seconds, the median of all rounds, and in brackets what share of the speed in local memory that is; then "
    "the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
    "\n"
    "Examples:\n"
    "  tonari bench matmul --quick\n"
    "  tonari bench matmul --size 4096 --local 100,20 --rival swap-zram --json matmul.json"};

constexpr FarKind stencil_kind{
    "stencil",
    "how long does a stencil with a 15 x 15 mask take over a picture that is partly local?",
    "time",
    false,
    false,
    "The picture's width and height; the DLM paper's is 8192",
    6144,
    1536,
    [](std::uint64_t n) { return 2 * n * n * 8; },
    0,
    0,
    "Prints seconds, the median of all rounds, and in brackets what share of the speed in local memory that is; then "
    "the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
    "\n"
    "Examples:\n"
    "  tonari bench stencil --quick\n"
    "  tonari bench stencil --size 8192 --local 100,20 --rival swap-zram --json stencil.json"};

constexpr FarKind fft3d_kind{
    "fft3d",
    "how long does FFTW's transform in three dimensions take of points that are partly local?",
    "time",
    false,
    false,
    "n: the points are n x n x n/2, an even number; the DLM paper's is 2048",
    400,
    160,
    [](std::uint64_t n) { return n * n * (n / 2) * 16; },
    0,
    0,
    "Prints seconds of a transform in place, the median of all rounds, and in brackets what share of the speed in "
    "local memory that is; then the speed-up over one thread in local memory, as figures 1 to 3 of the DLM paper.\n"
    "\n"
    "Examples:\n"
    "  tonari bench fft3d --quick\n"
    "  tonari bench fft3d --size 512 --local 100,20 --rival swap-zram --json fft3d.json"};

constexpr FarKind fault_kind{
    "fault",
    "what does it cost to read, and to write, 4 KiB somewhere in memory that is partly local?",
    "rate",
    true,
    true,
    "The memory, in bytes, with K, M, G, T",
    768 << 20,
    64 << 20,
    [](std::uint64_t bytes) { return bytes; },
    3,
    0.3,
    "Prints how many accesses one thread makes a second, to whole pages that are chosen at random; and how long one "
    "takes, median and 99th percentile, whether its page was local or not. tonari-core is `tonari far --bind core`: a "
    "fault wakes no other processor.\n"
    "\n"
    "Examples:\n"
    "  tonari bench fault --quick\n"
    "  tonari bench fault --local 20 --rival swap-zram,swap-file,mmap --json fault.json"};

/// A column for each system, a row for each x, of one case.
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

  /// Each entry is its median, and what share that is of the speed in local memory.
  [[nodiscard]] std::string text() const {
    return text([this](const Series& series, double x) {
      const double median = series.summary(x).median;
      if (local_ == 0 || median == 0 || series.name.system == "local") return format_number(median);
      return fmt::format("{} ({:.3f})", format_number(median), is_rate_ ? median / local_ : local_ / median);
    });
  }

  /// Each entry is what `entry` makes of a series at its x.
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
    return format_table(rows);
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

class FarQuestion final : public Question {
 public:
  explicit FarQuestion(const FarKind& kind) : kind_(kind) {}

  [[nodiscard]] std::string_view name() const override { return kind_.name; }
  [[nodiscard]] std::string_view asks() const override { return kind_.asks; }
  [[nodiscard]] int default_ranks() const override { return no_ranks; }
  [[nodiscard]] std::string_view rivals() const override {
    return "swap-zram and swap-file, the kernel's swapping, in a memory cgroup of the same size; mmap, the data as a "
           "file that is mapped, in such a cgroup. They need root, and switch swap on for the whole machine meanwhile. "
           "Of stream also ucx: what ucx_perftest sends over the link; with --apart network and --interface";
  }
  [[nodiscard]] std::string_view examples() const override { return kind_.examples; }

  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options, const std::vector<System>& asked) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] bool is(const FarKind& kind) const { return &kind_ == &kind; }
  [[nodiscard]] std::uint64_t size(const BenchOptions& options) const {
    return size_.value_or(options.quick ? kind_.quick_size : kind_.size);
  }
  [[nodiscard]] std::vector<int> local(const BenchOptions& options) const {
    return parse_ascending("--local", local_.value_or(options.quick ? "20,100" : "10,20,50,80,100"), 1, 100);
  }
  [[nodiscard]] std::vector<int> threads(const BenchOptions& options) const;
  [[nodiscard]] std::vector<std::string> cases() const {
    return is(stream_kind) ? parse_choices("--cases", cases_, {"threads", "remote"})
                           : std::vector<std::string>{"threads"};
  }
  [[nodiscard]] double budget_s(const BenchOptions& options) const {
    return options.quick ? kind_.quick_budget_s : kind_.budget_s;
  }
  [[nodiscard]] Ask ask(const BenchOptions& options) const;
  void plan_case(const Ask& asked, int percent_max, const BenchOptions& options, const std::vector<System>& systems,
                 std::vector<Launch>& to) const;
  void check_size(const BenchOptions& options) const;
  [[nodiscard]] static std::string tell_latency(const Results& results, const std::string& label);
  [[nodiscard]] std::string tell_wire(const Results& results) const;
  [[nodiscard]] std::string tell_speed_up(const Results& results) const;

  const FarKind& kind_;
  std::optional<std::uint64_t> size_;
  std::optional<std::string> local_;
  std::optional<std::string> threads_;
  std::string cases_ = "threads,remote";
  std::string interface_;
  std::string servers_;
  std::string folder_ = "/var/tmp";
};

void FarQuestion::add_options(CLI::App& command, BenchOptions&) {
  const auto usual = [&](std::uint64_t size) {
    return kind_.counts_bytes ? format_bytes(static_cast<double>(size)) : std::to_string(size);
  };
  command
      .add_option_function<std::uint64_t>(
          "--size", [this](std::uint64_t size) { size_ = size; },
          fmt::format("{} (default: {}, with --quick {})", kind_.size_help, usual(kind_.size), usual(kind_.quick_size)))
      ->type_name(kind_.counts_bytes ? "SIZE" : "N")
      ->transform(kind_.counts_bytes ? size_in_bytes() : whole_number("a length", 32, side_max))
      ->group("The question");
  command
      .add_option("--local", local_,
                  "Per cent of the data that are local, each from 1 to 100 (default: 10,20,50,80,100, with --quick "
                  "20,100)")
      ->type_name("LIST")
      ->group("The question");
  if (!is(fault_kind)) {
    command
        .add_option("--threads", threads_,
                    "Numbers of OpenMP threads, one after the other (default: 1, 2, 4 ... as many as there are cores, "
                    "with --quick 1)")
        ->type_name("LIST")
        ->group("The question");
  }
  if (is(stream_kind)) {
    command
        .add_option("--cases", cases_,
                    "threads: passes in a row. remote: before each pass all of the arrays is pushed out; where up to "
                    "50 % are local")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--interface", interface_,
                    "Tell what this network interface of this host has carried in a pass, too: received and sent")
        ->type_name("NAME")
        ->group("The question");
  }
  command
      .add_option("--servers", servers_, "How many processes lend memory, or the hosts where: as `tonari far` takes it")
      ->type_name("N|HOSTS")
      ->group("Memory");
  command.add_option("--folder", folder_, "Where swap files and mapped files are made: on a disk")
      ->type_name("PATH")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str()
      ->group("Memory");
}

std::vector<int> FarQuestion::threads(const BenchOptions& options) const {
  if (is(fault_kind)) return {1};
  if (threads_) return parse_ascending("--threads", *threads_, 1, 4096);
  std::vector<int> usual{1};
  if (options.quick) return usual;
  while (usual.back() * 2 < usable_cores()) usual.push_back(usual.back() * 2);
  if (usable_cores() > 1) usual.push_back(usable_cores());
  return usual;
}

Ask FarQuestion::ask(const BenchOptions& options) const {
  Ask ask{std::string(kind_.name), options.launch, {}};
  ask.arguments = {fmt::format("--size={}", size(options)), fmt::format("--budget-s={}", budget_s(options))};
  if (!interface_.empty()) ask.arguments.push_back("--interface=" + interface_);
  ask.far = FarAsk{.local_percent = 100,
                   .data_bytes = kind_.data_bytes(size(options)),
                   .servers = servers_,
                   .folder = std::filesystem::absolute(folder_)};
  return ask;
}

/// All that is compared is asked one after the other, what is local first. Where everything is local, the kernel's ways
/// have nothing to do.
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
      if (is_ours && is(fault_kind)) asks.push_back({Family::tonari_core, false});  // it has one thread
    }
    to.push_back({std::move(far), std::move(asks), fmt::format("{} local {}", what, percent)});
  }
}

std::vector<Launch> FarQuestion::plan(const BenchOptions& options, const std::vector<System>& asked) const {
  check_size(options);
  std::vector<Launch> launches;
  const auto systems = is(stream_kind) ? without(asked, Family::ucx) : asked;
  if (systems.size() != asked.size()) {
    if (interface_.empty() || options.launch.apart != "network") {
      throw SetupError("--rival ucx: it tells what the link carries; add --apart network and --interface");
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
  if (is(matmul_kind) && n % 16 != 0) throw SetupError(fmt::format("--size {}: it takes a multiple of 16", n));
  if (is(fft3d_kind) && n % 2 != 0) throw SetupError(fmt::format("--size {}: it takes an even number", n));
  if (kind_.data_bytes(n) < data_bytes_min || kind_.data_bytes(n) > data_bytes_max) {
    throw SetupError(fmt::format("--size {}: {} of data; it takes from {} to {}", n,
                                 format_bytes(static_cast<double>(kind_.data_bytes(n))), format_bytes(data_bytes_min),
                                 format_bytes(data_bytes_max)));
  }
}

nlohmann::ordered_json FarQuestion::parameters(const BenchOptions& options) const {
  nlohmann::ordered_json all{{"size", size(options)},         {"data_bytes", kind_.data_bytes(size(options))},
                             {"local", local(options)},       {"threads", threads(options)},
                             {"budget_s", budget_s(options)}, {"servers", servers_.empty() ? "default" : servers_}};
  if (is(stream_kind)) all["cases"] = cases();
  return all;
}

std::string FarQuestion::tell(const Results& results) const {
  std::string text;
  for (const auto& label : labels_of(results, kind_.metric)) {
    const FarTable table(results, label, kind_.metric, kind_.is_rate);
    text += fmt::format("\n{}: {}, {}, median (share of the speed that `local` has)\n{}", label, kind_.metric,
                        table.unit(), table.text());
    if (is(fault_kind)) text += tell_latency(results, label);
  }
  if (!interface_.empty()) text += tell_wire(results);
  if (!is(fault_kind)) text += tell_speed_up(results);
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

/// What the interface has carried, in and out, and what share that is of what UCX's own measurement sends.
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

/// As figures 1 to 3 of the DLM paper, a line for each share; and figure 4, the time that all is compared with.
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
                     format_table(rows));
}

}  // namespace

std::unique_ptr<Question> make_stream() { return std::make_unique<FarQuestion>(stream_kind); }
std::unique_ptr<Question> make_matmul() { return std::make_unique<FarQuestion>(matmul_kind); }
std::unique_ptr<Question> make_stencil() { return std::make_unique<FarQuestion>(stencil_kind); }
std::unique_ptr<Question> make_fft3d() { return std::make_unique<FarQuestion>(fft3d_kind); }
std::unique_ptr<Question> make_fault() { return std::make_unique<FarQuestion>(fault_kind); }

}  // namespace tonari::cli
