#pragma once

// Every kind of object, for the generated declarations of the front's functions.

#include "mpi/collectives/how.hpp"
#include "mpi/comm.hpp"
#include "mpi/counts.hpp"
#include "mpi/datatype.hpp"
#include "mpi/errhandler.hpp"
#include "mpi/failure.hpp"
#include "mpi/file.hpp"
#include "mpi/group.hpp"
#include "mpi/info.hpp"
#include "mpi/op.hpp"
#include "mpi/predefined.hpp"
#include "mpi/session.hpp"
#include "mpi/win.hpp"
