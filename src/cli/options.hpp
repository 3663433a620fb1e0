#pragma once

#include <CLI/CLI.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tonari::cli {

// Checks of options' values. The text for a wrong value is "must be ..., not 'VALUE'"; CLI11 puts the option's name in
// front of it, and run_command_line() the command's.

/// Accepts only digits, for a number from `min` to `max`; `what` names it: "a number of ranks". For
/// Option::transform(), because CLI11 would read 010 as eight.
CLI::Validator whole_number(std::string_view what, std::uint64_t min, std::uint64_t max);
/// Returns 65536 for "64K". Units: K, M, G and T. Returns 0 if `text` is no size.
std::size_t parse_size(std::string_view text) noexcept;
/// Accepts a size other than 0; the option gets the number of bytes.
CLI::Validator size_in_bytes();
/// Accepts a multiple of `unit` bytes, which are whole MiB, other than 0; the option gets the number of bytes.
CLI::Validator size_in_units_of(std::uint64_t unit);
/// Accepts a number of seconds: "60", "0.5".
CLI::Validator seconds();
/// Accepts one of these words.
CLI::Validator one_of(const std::vector<std::string>& words);
/// Accepts NAME=VALUE or NAME, for the environment of ranks. Refuses the variables that the runtime sets.
CLI::Validator variable();

/// Says why a command line was refused, in our words rather than CLI11's. `app`: as the parsing left it; `command`: the
/// one that was chosen.
std::string explain(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error);

}  // namespace tonari::cli
