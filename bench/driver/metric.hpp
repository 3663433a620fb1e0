#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

namespace tonari::bench::driver {

/// Which values of a metric are the better ones.
enum class Better : std::uint8_t { low, high, neither };

/// A metric of a benchmark, and how its table shows it.
struct Metric {
  enum class Form : std::uint8_t {
    median,
    mean_and_spread,
    untold,  ///< No table.
  };

  std::string_view name;
  Better better = Better::neither;
  Form form = Form::median;
};

/// Returns which values of the metric called `name` are better: neither if it is not among `metrics`.
inline Better better_of(std::span<const Metric> metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? Better::neither : found->better;
}

/// The word for it in the JSON.
inline std::string_view word_for(Better better) {
  return better == Better::low ? "low" : better == Better::high ? "high" : "none";
}

}  // namespace tonari::bench::driver
