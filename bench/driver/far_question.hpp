#pragma once

#include "driver/question.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// Adds the options that are passed on to `tonari far`.
void add_far_launch_options(CLI::App& command, FarLaunch& launch);

/// Returns "default" for an empty value, for the results.
std::string or_default(const std::string& value);

/// Describes a benchmark of far memory.
struct FarKind {
  std::string_view name;
  std::string_view asks;
  std::string_view metric;  ///< The metric of the tables.
  bool is_rate;             ///< Higher is better.
  bool counts_bytes;        ///< --size is the data in bytes, not a side length.
  std::string_view size_help;
  std::uint64_t size;
  std::uint64_t quick_size;
  std::uint64_t (*data_bytes)(std::uint64_t size);
  double budget_s;
  double quick_budget_s;
  std::string_view examples;
  std::uint64_t size_multiple = 1;           ///< --size must be a multiple of this.
  std::string_view size_multiple_text = {};  ///< Describes that for the error message.
  bool has_remote_case = false;              ///< Has a case with no local data, --interface, and --rival ucx.
  bool times_each_access = false;            ///< With one thread; also prints latencies, and measures tonari-core.
};

/// A benchmark of a program that knows nothing of tonari (suites/NAME/far.cpp), in partly local memory: by `tonari
/// far`, by the kernel's own methods, and with all memory local.
class FarQuestion : public Question {
 public:
  explicit FarQuestion(const FarKind& kind) : kind_(kind) {}

  [[nodiscard]] std::string_view name() const override { return kind_.name; }
  [[nodiscard]] std::string_view asks() const override { return kind_.asks; }
  [[nodiscard]] bool is_of_far_memory() const override { return true; }
  [[nodiscard]] bool has_ucx() const override { return kind_.has_remote_case; }
  [[nodiscard]] int default_ranks() const override { return no_ranks; }
  [[nodiscard]] std::string rivals() const override;
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    std::vector<UsualRun> runs{{"", {"--rival", "auto"}}};
    if (!quick) runs[0].arguments = {"--rounds", "3", "--local", "20,50,100", "--rival", "auto"};
    if (kind_.has_remote_case) {  // table 1 of the DLM paper is about memory behind a network
      runs.push_back(
          {"-network", {"--cases", "remote", "--local", "20,100", "--apart", "network", "--network", "tcp"}});
      if (!quick) runs[1].arguments.insert(runs[1].arguments.end(), {"--rounds", "3"});
    }
    return runs;
  }
  [[nodiscard]] std::string_view examples() const override { return kind_.examples; }

  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options, const std::vector<System>& asked) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{kind_.metric, kind_.is_rate ? Better::high : Better::low}, {"latency", Better::low}};
  }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::uint64_t size(const BenchOptions& options) const {
    return size_.value_or(options.quick ? kind_.quick_size : kind_.size);
  }
  [[nodiscard]] std::vector<int> local(const BenchOptions& options) const {
    return parse_ascending("--local", local_.value_or(options.quick ? "20,100" : "10,20,50,80,100"), 1, 100);
  }
  [[nodiscard]] std::vector<int> threads(const BenchOptions& options) const;
  [[nodiscard]] std::vector<std::string> cases() const {
    return kind_.has_remote_case ? parse_choices("--cases", cases_, {"threads", "remote"})
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
  FarLaunch launch_;
  std::string folder_ = "/var/tmp";
};

}  // namespace tonari::bench::driver
