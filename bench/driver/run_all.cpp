#include "driver/run_all.hpp"

#include "cli/standard_streams.hpp"
#include "cli/table.hpp"
#include "driver/child.hpp"
#include "driver/machine.hpp"
#include "driver/papers.hpp"
#include "driver/registry.hpp"

#include "base/error.hpp"
#include "base/file_descriptor.hpp"

#include <tonari/status.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace tonari::bench::driver {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int full_rounds = 10;

std::string duration(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One benchmark with the arguments of one run.
struct Run {
  std::string name;  ///< The name of its files: "overlap-blocks".
  std::string question;
  std::vector<std::string> arguments;
};

class RunAll {
 public:
  explicit RunAll(const AllOptions& options) : options_(options), folder_(options.folder) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error)
      throw_system_error(error.value(), fmt::format("cannot make {}", folder_.string()),
                         "give -o a path that can be written");
    collect();
  }

  int run() {
    const StopSignals signals;
    try {
      for (const auto& run : runs_) {
        if (is_there(run)) {
          outcomes_[run.name] = "was there";
        } else {
          measure(run);
        }
        ++done_;
      }
    } catch (const Interrupted& stop) {
      cli::print_stderr("\ntonari bench: stopped by signal {}; the same command continues with {}\n", stop.signal,
                        runs_[done_].name);
      return 128 + stop.signal;
    }
    tell();
    return has_failed_ ? 1 : 0;
  }

 private:
  void collect() {
    const auto of_papers = benchmarks_of_papers();
    std::vector<std::string> known;
    for (const auto& question : all_questions()) {
      const std::string name(question->name());
      if (options_.papers && !of_papers.contains(name)) {
        add(other_runs_, *question);
        continue;
      }
      known.push_back(name);
      add(options_.only.empty() || std::ranges::count(options_.only, name) > 0 ? runs_ : other_runs_, *question);
    }
    for (const auto& name : options_.only) {
      if (std::ranges::count(known, name) == 0) {
        throw SetupError(fmt::format("no benchmark{} is called '{}'; there are {}",
                                     options_.papers ? " of the papers" : "", name, fmt::join(known, ", ")));
      }
    }
  }

  void add(std::vector<Run>& to, const Question& question) const {
    const std::string name(question.name());
    for (auto& [suffix, arguments] : question.usual_runs(options_.effort == Effort::quick)) {
      to.push_back({name + suffix, name, std::move(arguments)});
    }
  }

  /// Returns the names of the benchmarks that the papers' tables, figures and findings need.
  static std::set<std::string> benchmarks_of_papers() {
    std::set<std::string> names;
    for (const auto& paper : read_papers(papers_folder())) {
      for (const auto& finding : paper.findings) names.insert(finding.benchmark);
      for (const auto& exhibit : paper.exhibits) {
        for (const auto& row : exhibit.rows) {
          if (row.ours) names.insert(row.ours->benchmark);
        }
      }
    }
    return names;
  }

  /// Returns the papers' tables, with all results of this version in the folder, also of earlier calls.
  [[nodiscard]] std::string papers() const {
    std::vector<std::string> files;
    for (const auto* runs : {&runs_, &other_runs_}) {
      for (const auto& run : *runs) {
        if (is_there(run)) files.push_back(file(run, ".json").string());
      }
    }
    return options_.tell_papers(files, (folder_ / "papers.md").string(), options_.only.empty());
  }

  [[nodiscard]] fs::path file(const Run& run, std::string_view extension) const {
    return folder_ / (run.name + std::string(extension));
  }

  [[nodiscard]] std::vector<std::string> words(const Run& run) const {
    std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "bench", run.question};
    words.insert(words.end(), run.arguments.begin(), run.arguments.end());
    if (options_.effort == Effort::quick) words.emplace_back("--quick");
    if (asks_for_full_rounds(run)) words.insert(words.end(), {"--rounds", std::to_string(full_rounds)});
    words.insert(words.end(), {"--json", file(run, ".json").string()});
    return words;
  }

  /// Returns whether --full adds rounds to the run. Runs that take long have a number of their own.
  [[nodiscard]] bool asks_for_full_rounds(const Run& run) const {
    return options_.effort == Effort::full && std::ranges::count(run.arguments, "--rounds") == 0;
  }

  /// Returns the JSON that a run left, or something that is no object.
  [[nodiscard]] nlohmann::json report_of(const Run& run) const {
    const auto path = file(run, ".json");
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return {};
    std::ifstream text(path);
    return nlohmann::json::parse(text, nullptr, false);
  }

  /// Returns whether an earlier call measured this run, in this way.
  [[nodiscard]] bool is_there(const Run& run) const {
    const auto report = report_of(run);
    if (!report.is_object()) return false;
    const auto machine = machine_as_json();
    return report.value("benchmark", "") == run.question && fs::exists(file(run, ".txt")) &&
           report.value("/machine/tonari_commit"_json_pointer, "") == machine.value("tonari_commit", "") &&
           report.value("/parameters/quick"_json_pointer, false) == (options_.effort == Effort::quick) &&
           (!asks_for_full_rounds(run) || report.value("/parameters/rounds"_json_pointer, 0) >= full_rounds);
  }

  void measure(const Run& run) {
    const auto begin = Clock::now();
    say_next(run);
    const auto draft = file(run, ".txt.tmp");
    int status = 0;
    {
      const FileDescriptor output(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!output) throw_system_error(fmt::format("cannot write {}", draft.string()), "free some space");
      status = run_child(
          {words(run), {}}, [] {}, output.number());
    }
    const double seconds = seconds_since(begin);
    measured_s_ += seconds;
    ++measured_;
    if (status == 0) {
      fs::rename(draft, file(run, ".txt"));
      outcomes_[run.name] = "done in " + duration(seconds);
      return;
    }
    fs::rename(draft, file(run, ".failed.txt"));
    has_failed_ = true;
    outcomes_[run.name] = fmt::format("FAILED with status {} after {}", status, duration(seconds));
    cli::print_stderr("tonari bench all: {} ended with status {}; its output is in {}\n", run.name, status,
                      file(run, ".failed.txt").string());
  }

  void say_next(const Run& run) {
    std::string left;
    if (measured_ > 0) {
      const auto rest = static_cast<double>(runs_.size() - done_);
      left = fmt::format(", about {} left", duration(measured_s_ / static_cast<double>(measured_) * rest));
    }
    cli::print_stderr("[{} of {}] {} ({} so far{})\n", done_ + 1, runs_.size(), run.name,
                      duration(seconds_since(begin_)), left);
  }

  void tell() const {
    const auto papers = this->papers();
    fmt::print("{}{}", papers, papers.empty() ? "" : "\n");
    std::vector<std::vector<std::string>> rows{{"benchmark", "outcome", "findings of the papers"}};
    for (const auto& run : runs_) rows.push_back({run.name, outcomes_.at(run.name), verdicts_of(run)});
    fmt::print("{}\nresults: {}\n", cli::format_table(rows), folder_.string());
    if (!papers.empty()) fmt::print("the papers' tables: {}\n", (folder_ / "papers.md").string());
  }

  /// Counts the verdicts in a report: "2 hold, 1 does not hold".
  [[nodiscard]] std::string verdicts_of(const Run& run) const {
    const auto report = report_of(run);
    if (!report.is_object() || !report.contains("verdicts") || report["verdicts"].empty()) return "-";
    std::map<std::string, int> counts;
    for (const auto& verdict : report["verdicts"]) ++counts[verdict["outcome"].get<std::string>()];
    std::string said;
    for (const auto& [outcome, count] : counts)
      said += fmt::format("{}{}: {}", said.empty() ? "" : ", ", outcome, count);
    return said;
  }

  const AllOptions& options_;
  fs::path folder_;
  std::vector<Run> runs_;
  std::vector<Run> other_runs_;  // not chosen; their results may be in the folder
  std::map<std::string, std::string> outcomes_;
  Clock::time_point begin_ = Clock::now();
  std::size_t done_ = 0;
  std::size_t measured_ = 0;
  double measured_s_ = 0;
  bool has_failed_ = false;
};

}  // namespace

int run_all(const AllOptions& options) { return RunAll(options).run(); }

}  // namespace tonari::bench::driver
