#pragma once

#include "driver/findings.hpp"
#include "driver/results.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tonari::bench::driver {

/// Whether a finding of a paper holds on this machine.
enum class Outcome : std::uint8_t { holds, does_not_hold, no_difference_seen, not_decided };

struct Verdict {
  Finding finding;
  Outcome outcome = Outcome::no_difference_seen;
  Comparison measured;  ///< The ratio that the finding is about.
  std::string at;       ///< "n 2000": the x of the quantity, where the finding leaves it open.
};

/// Judges a finding: it holds if the interval of the ratio is where the finding claims, and does not hold if the
/// interval is outside; otherwise no difference was seen. One round decides nothing. Returns nothing if a quantity was
/// not measured.
std::optional<Verdict> judge(const Finding& finding, const Results& results);

/// Judges the findings whose quantities were measured.
std::vector<Verdict> judge_all(const std::vector<Finding>& findings, const Results& results);

/// One line per verdict: "holds: heads in line ... (LHS, section 5.1.3): 40.9x [38.2, 43.8] at depth up to 1000; the
/// paper: 43x".
std::string tell_verdicts(const std::vector<Verdict>& verdicts);

/// Returns the member "verdicts" of the JSON.
nlohmann::ordered_json verdicts_as_json(const std::vector<Verdict>& verdicts);

}  // namespace tonari::bench::driver
