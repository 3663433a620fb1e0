#pragma once

#include "mpi/datatype.hpp"

#include <array>

namespace tonari::mpi {

/// Makes the predefined types, by the last nine bits of their handles. They live until the process ends.
std::array<Datatype*, 512> make_predefined_types();

}  // namespace tonari::mpi
