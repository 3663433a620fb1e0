#pragma once

#include "mpi.h"

#include <tonari/status.hpp>

#include <stdexcept>
#include <string>

namespace tonari::mpi {

/// The exception that the front's functions throw if they fail. The entry point that called them gives it to an error
/// handler.
struct Failure : std::runtime_error {
  /// `code`: an error class, or a code that the program has added. `text`: the cause and the remedy, without the name
  /// of the function, which the entry point adds.
  Failure(int why, const std::string& text) : std::runtime_error(text), code(why) {}
  int code;
};

/// Throws the Failure that a status of the runtime means, unless it is ok.
void check(Status status);

/// Says what a status of the runtime means, and which ranks are dead if that is the reason.
std::string explanation_of(Status status);

/// The error class that a status of the runtime means.
int class_of(Status status) noexcept;
/// Returns the failure that the status of a collective means: invalid and truncated mean that the ranks disagree about
/// sizes. Precondition: the status is not ok.
Failure failure_of_collective(Status status);

}  // namespace tonari::mpi
