#pragma once

namespace tonari::far {

/// From now on, forked children inherit far memory: as it was at the fork, whatever their parent does with it later.
/// Returns 0 or an error number. Does nothing if it was called before.
int watch_forks() noexcept;

}  // namespace tonari::far
