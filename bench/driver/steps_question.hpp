#pragma once

#include "driver/question.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tonari::bench::driver {

/// A case: how a program of steps runs, and its options for the worker.
struct StepsCase {
  enum class Way : std::uint8_t { message, share, guarded, openmp };

  std::string name;
  Way way;
  bool apart = false;  ///< Each rank is a host of its own: TONARI_APART.
  std::vector<std::string> arguments{};
  bool usual = true;  ///< Measured by default.
};

/// The option for the size of the data. The worker's option has the same name.
struct StepsSize {
  std::string name;
  std::string meaning;
  std::string usual;
  std::string quick;
  std::vector<std::string> choices{};  ///< If empty, the option takes a number of rows.
};

/// A benchmark of a program that repeats a step on common data: with messages, shared arrays, guarded data, and
/// threads. kernels/steps.hpp measures it.
class StepsQuestion : public Question {
 public:
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string rivals() const override { return rival_mpis() + ". They run the case message"; }
  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"rate", Better::high}}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 protected:
  /// Returns the cases that not all such programs have.
  [[nodiscard]] virtual std::vector<StepsCase> own_cases() const { return {}; }
  [[nodiscard]] static StepsCase guarded() { return {"guarded", StepsCase::Way::guarded, true}; }
  /// Returns cases to add to the chosen ones: ",name", or nothing.
  [[nodiscard]] virtual std::string added_cases() const { return ""; }
  [[nodiscard]] virtual StepsSize size() const = 0;
  [[nodiscard]] static StepsSize rows(const char* usual, const char* quick) {
    return {"size", "Rows and columns of the grid", usual, quick};
  }

 private:
  [[nodiscard]] std::vector<int> ranks() const;
  /// Returns all cases, in the order of the table.
  [[nodiscard]] std::vector<StepsCase> known_cases() const;
  [[nodiscard]] std::string usual_cases() const;
  [[nodiscard]] std::string cases() const { return cases_.value_or(usual_cases()) + added_cases(); }
  [[nodiscard]] std::string size_asked(bool quick) const;
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 20000 : 300000; }
  [[nodiscard]] Ask ask(const BenchOptions& options, const StepsCase& which, int ranks) const;

  std::optional<std::string> ranks_;
  std::optional<std::string> cases_;
  std::optional<std::string> size_;
};

}  // namespace tonari::bench::driver
