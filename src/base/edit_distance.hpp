#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tonari {

/// Number of letters to insert, delete, replace or swap with their neighbour, to turn one word into the other: the
/// restricted Damerau-Levenshtein distance.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// Returns the word of `known` that `typed` was probably meant to be; empty if every word is too far from it.
std::string_view likely_meant(std::string_view typed, std::span<const std::string_view> known);

}  // namespace tonari
