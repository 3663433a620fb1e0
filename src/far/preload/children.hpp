#pragma once

namespace tonari::far {

/// From now on, a forked child that touches the arena, which it does not inherit, ends with a message that says so.
/// Returns 0 or an error number.
int watch_for_children() noexcept;

}  // namespace tonari::far
