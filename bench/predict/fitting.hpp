#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace tonari::bench::predict {

/// Measurements of messages of one size, in us: medians.
struct Measured {
  std::size_t bytes = 0;
  double half_round_trip_us = 0;
  double send_us = 0;      ///< Time of a call that starts a send.
  double gap_us = 0;       ///< Time from one message to the next, while several are under way.
  double exchange_us = 0;  ///< Time of a rank that sends a message and receives one from the same peer.
  std::optional<std::pair<double, double>> interval{};  ///< For half_round_trip_us.
};

/// Returns the member "in_host" or "between_hosts" of the parameters. Half a round trip is the sum of send_us,
/// latency_us and receive_us. An exchange that takes longer than half a round trip is the sum of send_us and
/// receive_us: the message is there before the call that sends it returns, so latency_us is negative. Otherwise the
/// receiver is taken to be busy for the gap, at most for the time besides the send. If a message is not eager, the
/// rest of an exchange is push_us.
nlohmann::ordered_json fit_costs(const std::vector<Measured>& measured, std::size_t eager_bytes_max);

/// Returns the median relative error of half round trips that are interpolated from the sizes before and after, over
/// the sizes that have both; 0 if there are none. So much may a prediction err for sizes that were not measured.
double residual_error(const std::vector<Measured>& measured);

}  // namespace tonari::bench::predict
