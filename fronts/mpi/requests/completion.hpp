#pragma once

#include "mpi/request.hpp"

#include <cstddef>
#include <string>

// The end of requests: statuses, errors, and handles.
namespace tonari::mpi {

/// Returns the request that a handle names, or null if there is nothing to wait for: it is MPI_REQUEST_NULL, or the
/// request is inactive. Throws Failure if the handle is wrong.
Request* find_active(MPI_Request handle);

/// A program's array of handles.
class Handles {
 public:
  /// Throws Failure if a handle is wrong.
  Handles(int count, const MPI_Request* handles);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// The request at index i, or null if there is nothing to wait for.
  [[nodiscard]] Request* active(std::size_t i) const noexcept {
    Request* const request = number_of(handles_[i]) < first_address ? nullptr : handles_[i];
    return request != nullptr && request->is_active ? request : nullptr;
  }

 private:
  const MPI_Request* handles_;
  std::size_t size_;
};

/// Writes the status of a complete request, or an empty one if there is none. Callbacks of the program may throw
/// Failure. `status` may be MPI_STATUS_IGNORE.
void describe(const Request* request, MPI_Status* status);

/// The errors of the requests that one call completes.
struct Failures {
  std::size_t count = 0;
  // The first one:
  int code = MPI_SUCCESS;
  std::string text;
  Ref<Comm> comm;
};

/// Ends a complete request: writes the status, and makes the request inactive if it is persistent; otherwise destroys
/// it and sets the handle to MPI_REQUEST_NULL. Returns the error code, and adds it to `failures`.
int end(MPI_Request& handle, Request& request, MPI_Status* status, Failures& failures);
/// The same; throws the error.
void end(MPI_Request& handle, Request& request, MPI_Status* status);

/// Writes the statuses of requests that one call completes, in order. If one has an error, all get an MPI_ERROR.
class Statuses {
 public:
  explicit Statuses(MPI_Status* statuses) noexcept : statuses_(statuses) {}
  /// Ends the complete request that the handle names. Writes an empty status if it is null or inactive.
  void end(MPI_Request& handle);
  /// Throws MPI_ERR_IN_STATUS if a request had an error.
  void raise() const;

 private:
  void add(int code) noexcept;

  MPI_Status* statuses_;
  std::size_t count_ = 0;
  Failures failures_;
};

/// Ends all requests that are complete already, and writes their number and indices.
void end_complete(const Handles& handles, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                  MPI_Status* array_of_statuses);

}  // namespace tonari::mpi
