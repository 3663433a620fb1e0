#pragma once

#include "message/host_groups.hpp"
#include "message/part.hpp"
#include "message/rounds.hpp"

#include <span>

// Collectives that move data, recorded as rounds of messages. Parts are asked for while the collective is recorded.
// Where this rank's own part is a pointer, null means that it is in its place already. No two parts may overlap, unless
// both are only sent. All functions throw std::bad_alloc.
namespace tonari::message {

/// At most so many peers per round, so that a large job does not start thousands of messages at once.
inline constexpr int peers_a_round = 64;

/// The data of a tree's root go to all ranks of the tree.
void write_broadcast(Rounds& rounds, const Tree& tree, const Part& data);
/// The root's data go to all ranks.
void write_broadcast(Rounds& rounds, const Members& members, const Part& data, int root);
/// Each rank's `mine` goes to the root's all(rank). The other ranks' `all` is not used.
void write_gather(Rounds& rounds, const Members& members, const Part* mine, const Parts& all, int root);
/// The root's all(rank) goes to each rank's `mine`. The other ranks' `all` is not used.
void write_scatter(Rounds& rounds, const Members& members, const Parts& all, const Part* mine, int root);
/// Each rank's `mine` goes to all(rank) of all ranks.
void write_all_gather(Rounds& rounds, const Members& members, const Part* mine, const Parts& all);
/// sent(rank) goes to that rank, where it becomes received(this rank).
void write_all_to_all(Rounds& rounds, const Members& members, const Parts& sent, const Parts& received);
/// The same with data that are replaced: exchanged(rank) goes to that rank, and is replaced by that rank's data for
/// this rank, which have the same length.
void write_all_to_all_in_place(Rounds& rounds, const Members& members, const Parts& exchanged);

}  // namespace tonari::message
