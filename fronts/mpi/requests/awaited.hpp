#pragma once

#include "mpi/requests/completion.hpp"

#include <string_view>

// Names the requests that a thread waits for, for `tonari status`.
namespace tonari::mpi {

/// Says, during its life, that the calling thread waits for these requests, which must live as long.
class Awaiting {
 public:
  explicit Awaiting(const Request& one) noexcept : one_(&one), before_(current) { current = this; }
  explicit Awaiting(const Handles& several) noexcept : several_(&several), before_(current) { current = this; }
  Awaiting(Awaiting&&) = delete;
  ~Awaiting() { current = before_; }

 private:
  friend std::string_view describe_call() noexcept;
  static inline thread_local constinit const Awaiting* current = nullptr;

  const Request* one_ = nullptr;
  const Handles* several_ = nullptr;
  const Awaiting* before_;
};

/// Returns the function of MPI that the calling thread is in, and what it waits for: "MPI_Waitall (2 of 5 left)",
/// "MPI_Wait of MPI_Ibarrier on MPI_COMM_WORLD". The text is valid until the thread's next call.
std::string_view describe_call() noexcept;

}  // namespace tonari::mpi
