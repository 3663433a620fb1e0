#pragma once

namespace tonari::far {

/// Makes the large static variables of the program and its libraries far memory. Their contents stay as they are.
/// Begins first, as make_ready() does, if there are any. Call it before main(). Does nothing if other threads run
/// already: they might use a variable while it is moved.
void use_static_memory() noexcept;

}  // namespace tonari::far
