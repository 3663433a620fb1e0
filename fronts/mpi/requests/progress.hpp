#pragma once

namespace tonari::mpi {

/// Makes progress once.
void make_progress() noexcept;
/// The same, and gives up the core: for waits that the runtime cannot end.
void make_progress_and_yield() noexcept;

}  // namespace tonari::mpi
