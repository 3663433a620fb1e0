#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tonari::bench::predict {

/// The cost of a message of `bytes`, in us. These are the parameters of LogGP (Alexandrov et al., SPAA 1995), measured
/// for each size instead of for the first and for each further byte, as in PLogP (Kielmann et al., 2000).
struct MessageCost {
  std::size_t bytes = 0;
  double latency_us = 0;  ///< L and G: from the end of its send to the start of its receive. It is negative if the
                          ///< message is there before the call that sends it returns; at least -send_us.
  double send_us = 0;     ///< o: the sender's core is busy.
  double receive_us = 0;  ///< o: the receiver's core is busy.
  double push_us = 0;     ///< For messages that are not eager: the sender's core is busy once the receive is posted.
  double gap_us = 0;      ///< g and G: from one message to the next of the same sender, at least.
};

/// The costs of messages between two ranks of one kind: of one host, or of different hosts.
class Costs {
 public:
  Costs() = default;
  /// `points` ascend by bytes; there must be at least one. Messages of more than `eager_bytes_max` wait until their
  /// receive is posted.
  Costs(std::vector<MessageCost> points, std::size_t eager_bytes_max);

  /// Returns the cost for any size: interpolated between points, extrapolated beyond the last two, and that of the
  /// first point below it.
  [[nodiscard]] MessageCost at(std::size_t bytes) const noexcept;
  [[nodiscard]] bool is_eager(std::size_t bytes) const noexcept { return bytes <= eager_bytes_max_; }
  /// Returns the time that a message occupies the link of a host, which all ranks of the host share: the part of the
  /// gap that depends on the size.
  [[nodiscard]] double link_us(const MessageCost& cost) const noexcept;
  [[nodiscard]] const std::vector<MessageCost>& points() const noexcept { return points_; }
  [[nodiscard]] std::size_t eager_bytes_max() const noexcept { return eager_bytes_max_; }

 private:
  std::vector<MessageCost> points_;
  std::size_t eager_bytes_max_ = 0;
};

/// All that a prediction knows about a machine.
struct Parameters {
  Costs in_host;
  Costs between_hosts;
  double copy_us_per_byte = 0;
  double fold_us_per_byte = 0;      ///< Summing doubles.
  double switch_us = 0;             ///< From one rank to another that shares its core.
  std::optional<double> lu_gflops;  ///< Rates of one rank in the benchmarks lu and himeno.
  std::optional<double> himeno_mflops;
};

/// Reads a file that `tonari bench fit` has written. Throws SetupError, which names the file, if it cannot be read, is
/// no such file, or has values that make no sense.
Parameters read_parameters(const std::string& path);

/// The same from JSON. `name` is for error messages.
Parameters parse_parameters(const nlohmann::ordered_json& json, const std::string& name);

inline constexpr const char* parameters_schema = "tonari parameters";
inline constexpr int parameters_version = 1;

}  // namespace tonari::bench::predict
