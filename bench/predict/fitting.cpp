#include "predict/fitting.hpp"

#include "driver/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace tonari::bench::predict {

nlohmann::ordered_json fit_costs(const std::vector<Measured>& measured, std::size_t eager_bytes_max) {
  auto sizes = nlohmann::ordered_json::array();
  for (const auto& one : measured) {
    const double send_us = std::min(one.send_us, one.half_round_trip_us);
    const bool is_busy = one.bytes <= eager_bytes_max && one.exchange_us > one.half_round_trip_us;
    const double receive_us = is_busy ? std::min(one.exchange_us - send_us, one.half_round_trip_us)
                                      : std::min(one.gap_us, one.half_round_trip_us - send_us);
    const bool is_announced = one.bytes > eager_bytes_max;
    const double push_us = is_announced ? std::max(0.0, one.exchange_us - send_us - receive_us) : 0;
    sizes.push_back({{"bytes", one.bytes},
                     {"latency_us", one.half_round_trip_us - send_us - receive_us},
                     {"send_us", send_us},
                     {"receive_us", receive_us},
                     {"push_us", push_us},
                     {"gap_us", std::max(one.gap_us, send_us)},
                     {"half_round_trip_us", one.half_round_trip_us},
                     {"exchange_us", one.exchange_us}});
    if (one.interval) sizes.back()["interval"] = {one.interval->first, one.interval->second};
  }
  return {{"eager_bytes_max", eager_bytes_max}, {"sizes", sizes}, {"residual_error", residual_error(measured)}};
}

double residual_error(const std::vector<Measured>& measured) {
  std::vector<double> errors;
  for (std::size_t i = 1; i + 1 < measured.size(); ++i) {
    const auto& [low, high] = std::pair(measured[i - 1], measured[i + 1]);
    const double share =
        static_cast<double>(measured[i].bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
    const double expected = low.half_round_trip_us + share * (high.half_round_trip_us - low.half_round_trip_us);
    errors.push_back(std::fabs(expected / measured[i].half_round_trip_us - 1));
  }
  std::ranges::sort(errors);
  return driver::quantile(errors, 0.5);
}

}  // namespace tonari::bench::predict
