#pragma once

#include "predict/operations.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace tonari::bench::predict {

/// A collective that was predicted and measured.
struct Checked {
  Collective collective;
  int ranks;
  std::size_t bytes;
  double predicted_us;
  double measured_us;
  bool shares_cores;  ///< There were more ranks than cores.

  [[nodiscard]] double error() const noexcept { return predicted_us / measured_us - 1; }
};

/// Returns the number of ranks of the barrier by which `tonari bench fit` finds switch_us: two per core. Returns 0 if
/// check() has no more ranks than cores, and so no use for it.
[[nodiscard]] int ranks_sharing_cores();

/// Returns the switch_us with which a barrier of ranks_sharing_cores() ranks is predicted to take `measured_us`.
[[nodiscard]] double fit_switch_us(Parameters parameters, double measured_us);

/// Measures barrier, broadcast and all-reduce of 2 to 8 ranks, each of which this machine treats as a host of its own,
/// and predicts the same, except the barrier of ranks_sharing_cores() ranks, which the fit has seen. Throws SetupError,
/// and driver::Interrupted.
std::vector<Checked> check(const Parameters& parameters, const std::string& network, bool quick);

/// Returns the median of the absolute errors; 0 if there are none.
double median_error(const std::vector<Checked>& all);

std::string tell_checked(const std::vector<Checked>& all);
nlohmann::ordered_json checked_as_json(const std::vector<Checked>& all);

}  // namespace tonari::bench::predict
