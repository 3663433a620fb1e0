#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

// Checks of options. What is wrong is answered as "it takes WHAT; 'TEXT' is none", to which CLI11 puts the option's
// name and main() the command's.

/// Digits alone, as a number from `min` to `max`; `what` names it: "a number of ranks". For Option::transform(): CLI11
/// would take 010 for eight.
CLI::Validator whole_number(std::string_view what, std::uint64_t min, std::uint64_t max);
/// "64K" as 65536; units K, M, G and T. 0 on what is no size.
std::size_t parse_size(std::string_view text) noexcept;
/// Bytes with such a unit, not 0; the option gets the number.
CLI::Validator size_in_bytes();
/// A length of time: "60", "0.5".
CLI::Validator seconds();
/// One of so many words.
CLI::Validator one_of(const std::vector<std::string>& words);
/// NAME=VALUE or NAME, for the environment of ranks. The runtime's own variables are refused.
CLI::Validator variable();

/// Says why a command line was refused, in our words rather than CLI11's. `app`: as the parsing left it; `command`: the
/// one that was chosen.
std::string explain(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error);

}  // namespace tonari::cli
