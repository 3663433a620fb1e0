#pragma once

#include "predict/parameters.hpp"
#include "predict/programs.hpp"
#include "predict/simulation.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace tonari::bench::predict {

/// A collective whose time can be predicted.
enum class Collective : std::uint8_t { barrier, broadcast, all_reduce, all_to_all };

[[nodiscard]] std::string_view name_of(Collective collective) noexcept;

/// The most ranks for which all messages of an all-to-all are simulated; the number of messages is their square.
inline constexpr int simulated_all_to_all_ranks_max = 2048;

/// Records `repeats` collectives in a row for all ranks, with the code that the runtime uses between hosts. `bytes`: of
/// the broadcast data, of the operands, or for each rank of an all-to-all; at most Programs::bytes_max. Throws
/// std::bad_alloc.
Programs record(Collective collective, std::size_t bytes, const Shape& shape, const LocalCosts& costs, int repeats = 1);

/// Predicts one collective. Broadcasts have rank 0 as root. An all-to-all of more than simulated_all_to_all_ranks_max
/// ranks is predicted by symmetric_all_to_all().
Outcome predict(Collective collective, std::size_t bytes, const Shape& shape, const Parameters& parameters);

/// Predicts an all-to-all by the steps of one rank. All ranks are taken to do the same at the same time: a message
/// leaves rank 0 for the rank `distance` after it when another arrives from the rank `distance` before it. This is
/// exact with one rank per host. With several, they are taken to leave messages on the host's link in turn. The result
/// is then up to a fifth too short, because ranks do not keep in step.
Outcome symmetric_all_to_all(std::size_t bytes, const Shape& shape, const Parameters& parameters);

}  // namespace tonari::bench::predict
