#pragma once

#include "predict/parameters.hpp"
#include "predict/programs.hpp"

#include <cstdint>

namespace tonari::bench::predict {

/// The result of a simulation.
struct Outcome {
  double time_us = 0;  ///< Until the last rank ends.
  std::uint64_t messages = 0;
  std::uint64_t messages_between_hosts = 0;
  std::uint64_t rounds = 0;  ///< The rank that waits most often has so many.
};

/// Executes the programs of all ranks over a simulated wire, event by event in the order of time, as LogGOPSim does
/// (Hoefler, Schneider, Lumsdaine: LogGOPSim - simulating large-scale applications in the LogGOPS model, HPDC 2010).
/// The same input gives the same result.
///
/// Model: a send occupies the sender's core for send_us; a receive the receiver's for receive_us, once the message is
/// there and the rank waits. Messages of one sender leave at least gap_us apart. Each host has one link in each
/// direction, which a message to or from another host occupies for the part of the gap that depends on its size. A
/// message that is not eager is announced first, and leaves when its receive is posted, which occupies the sender's
/// core for push_us; its sender waits for its arrival. If ranks share cores, rank r uses core r modulo their number,
/// first come, first served, and the change to another rank takes switch_us.
///
/// Throws std::logic_error if the programs deadlock, and std::bad_alloc.
Outcome simulate(const Parameters& parameters, const Shape& shape, Programs programs);

}  // namespace tonari::bench::predict
