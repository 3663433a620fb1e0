#pragma once

namespace tonari::mpi {

/// Makes progress once.
void make_progress() noexcept;
/// The same, and gives up the core: for waits that the runtime cannot end.
void make_progress_and_yield() noexcept;

/// Called before a function returns that something has not happened yet: if there are more ranks than cores, another
/// rank may need the core to make it happen.
void let_others_run() noexcept;

}  // namespace tonari::mpi
