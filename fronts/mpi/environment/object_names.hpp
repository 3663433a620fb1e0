#pragma once

#include "mpi/comm.hpp"
#include "mpi/datatype.hpp"

#include <string>

// The names of communicators and datatypes, which a program can set at any time. Threads: any.
namespace tonari::mpi {

std::string name_of(const Comm& comm);
std::string name_of(const Datatype& type);
/// Returns its name, or what there is to say about one without a name.
std::string description(const Comm& comm);
std::string description(const Datatype& type);

}  // namespace tonari::mpi
