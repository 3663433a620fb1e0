#pragma once

#include "driver/question.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tonari::bench::driver {

/// The message sizes of a collective.
struct Sizes {
  std::string_view meaning;  ///< For the help text.
  std::string_view usual;
  std::string_view quick;
  std::size_t multiple_of = 1;
};

/// Describes a collective.
struct Collective {
  std::string_view name;
  std::string_view asks;
  std::string_view examples;
  std::optional<Sizes> sizes;
  std::vector<std::string_view> metrics;
};

/// A benchmark of a collective operation, measured with several numbers of ranks in turn.
class CollectiveQuestion : public Question {
 public:
  explicit CollectiveQuestion(Collective collective) : collective_(std::move(collective)) {}

  [[nodiscard]] std::string_view name() const override { return collective_.name; }
  [[nodiscard]] std::string_view asks() const override { return collective_.asks; }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override { return collective_.examples; }

  void add_options(CLI::App& command, BenchOptions& options) override;
  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override;
  [[nodiscard]] std::vector<Metric> metrics() const override;

 private:
  [[nodiscard]] std::vector<int> ranks() const;
  [[nodiscard]] std::vector<std::size_t> sizes(const BenchOptions& options) const;
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 5000 : 30000; }

  Collective collective_;
  std::optional<std::string> ranks_;
};

}  // namespace tonari::bench::driver
