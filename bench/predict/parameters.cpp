#include "predict/parameters.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>

namespace tonari::bench::predict {

namespace {

using Json = nlohmann::ordered_json;

double between(double low, double high, double share) noexcept { return low + share * (high - low); }

/// Returns a time or rate of `json`. Throws SetupError unless it is finite and at least `min`.
double number(const Json& json, const char* name, double min = 0) {
  const double value = json.at(name).get<double>();
  if (!std::isfinite(value) || value < min) throw SetupError(fmt::format("{}: {} is no time or rate", name, value));
  return value;
}

std::size_t size(const Json& json, const char* name) {
  const auto& value = json.at(name);
  if (!value.is_number_integer() || value < 0) throw SetupError(fmt::format("{}: {} is no size", name, value.dump()));
  return value.get<std::size_t>();
}

std::optional<double> rate(const Json& json, const char* name) {
  if (!json.contains(name)) return std::nullopt;
  const double value = number(json, name);
  if (value <= 0) throw SetupError(fmt::format("{}: a rate must be above 0", name));
  return value;
}

constexpr double rounding_us = 1e-6;  // of numbers in the file

Costs parse_costs(const Json& json) {
  std::vector<MessageCost> points;
  for (const auto& one : json.at("sizes")) {
    const double send_us = number(one, "send_us");
    points.push_back({.bytes = size(one, "bytes"),
                      .latency_us = number(one, "latency_us", -send_us - rounding_us),
                      .send_us = send_us,
                      .receive_us = number(one, "receive_us"),
                      .push_us = number(one, "push_us"),
                      .gap_us = number(one, "gap_us")});
  }
  if (points.empty()) throw SetupError("sizes: there are none");
  const auto not_ascending = [](const MessageCost& a, const MessageCost& b) { return a.bytes >= b.bytes; };
  if (std::ranges::adjacent_find(points, not_ascending) != points.end()) throw SetupError("sizes: they do not ascend");
  return {std::move(points), size(json, "eager_bytes_max")};
}

}  // namespace

Costs::Costs(std::vector<MessageCost> points, std::size_t eager_bytes_max)
    : points_(std::move(points)), eager_bytes_max_(eager_bytes_max) {}

MessageCost Costs::at(std::size_t bytes) const noexcept {
  if (bytes <= points_.front().bytes || points_.size() == 1) return points_.front();
  const auto above = std::ranges::lower_bound(points_, bytes, {}, &MessageCost::bytes);
  const auto high = above == points_.end() ? std::prev(above) : above;
  const auto low = std::prev(high);
  const double share = static_cast<double>(bytes - low->bytes) / static_cast<double>(high->bytes - low->bytes);
  const double send_us = std::max(0.0, between(low->send_us, high->send_us, share));
  return {.bytes = bytes,
          .latency_us = std::max(-send_us, between(low->latency_us, high->latency_us, share)),
          .send_us = send_us,
          .receive_us = std::max(0.0, between(low->receive_us, high->receive_us, share)),
          .push_us = std::max(0.0, between(low->push_us, high->push_us, share)),
          .gap_us = std::max(0.0, between(low->gap_us, high->gap_us, share))};
}

double Costs::link_us(const MessageCost& cost) const noexcept {
  return std::max(0.0, cost.gap_us - points_.front().gap_us);
}

Parameters parse_parameters(const Json& json, const std::string& name) {
  if (!json.is_object() || !json.contains("schema") || json["schema"] != parameters_schema) {
    throw SetupError(fmt::format("{}: holds no parameters; give a file that `tonari bench fit -o FILE` wrote", name));
  }
  try {
    if (json.at("version") != parameters_version) {
      throw SetupError(fmt::format("version {}, not {}", json["version"].dump(), parameters_version));
    }
    Parameters parameters{.in_host = parse_costs(json.at("in_host")),
                          .between_hosts = parse_costs(json.at("between_hosts")),
                          .copy_us_per_byte = number(json.at("local"), "copy_us_per_byte"),
                          .fold_us_per_byte = number(json.at("local"), "fold_us_per_byte"),
                          .switch_us = number(json.at("local"), "switch_us"),
                          .lu_gflops = rate(json.at("local"), "lu_gflops"),
                          .himeno_mflops = rate(json.at("local"), "himeno_mflops")};
    return parameters;
  } catch (const nlohmann::json::exception& error) {
    throw SetupError(fmt::format("{}: is not complete: {}; run `tonari bench fit -o FILE` again", name, error.what()));
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("{}: {}; run `tonari bench fit -o FILE` again", name, error.what()));
  }
}

Parameters read_parameters(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw_system_error(fmt::format("cannot read {}", path));
  std::string bytes;
  try {
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  } catch (const std::ios_base::failure& error) {  // path is a folder, or the disk fails
    throw SetupError(fmt::format("cannot read {}: {}", path, error.what()));
  }
  return parse_parameters(Json::parse(bytes, nullptr, false), path);
}

}  // namespace tonari::bench::predict
