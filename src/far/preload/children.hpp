#pragma once

namespace tonari::far {

/// From now on a forked child that touches the arena, which it does not have, ends with a message that says so.
/// Answers 0 or an error number.
int watch_for_children() noexcept;

}  // namespace tonari::far
