#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace tonari {

/// Returns the smallest number of letters to insert, delete, replace or swap with their neighbour in order to turn one
/// word into the other: the restricted Damerau-Levenshtein distance.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// Returns the word of `known` that `typed` was probably meant to be. Empty if no word is near enough.
std::string_view likely_meant(std::string_view typed, std::span<const std::string_view> known);

}  // namespace tonari
