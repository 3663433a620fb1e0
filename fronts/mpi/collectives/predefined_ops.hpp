#pragma once

#include "mpi/op.hpp"

#include <array>

namespace tonari::mpi {

/// Makes the predefined operations, by the last five bits of their handles.
std::array<Op*, 32> make_predefined_ops();

}  // namespace tonari::mpi
