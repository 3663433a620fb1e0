#pragma once

#include "mpi.h"

namespace tonari::mpi {

/// The form in which a program called a collective.
struct How {
  enum class Form { blocking, started, persistent };
  static How blocking() noexcept { return {Form::blocking, nullptr}; }
  static How started(MPI_Request* request) noexcept { return {Form::started, request}; }
  static How persistent(MPI_Request* request) noexcept { return {Form::persistent, request}; }

  Form form;
  MPI_Request* request;  ///< Where the request goes; null if blocking.
};

}  // namespace tonari::mpi
