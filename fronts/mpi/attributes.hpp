#pragma once

#include "mpi/object.hpp"

#include <map>

namespace tonari::mpi {

/// The values that a program has attached to an object, by key. attributes.cpp has the keys and their callbacks.
using Attributes = std::map<int, void*>;

}  // namespace tonari::mpi
