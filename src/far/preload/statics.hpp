#pragma once

namespace tonari::far {

/// Makes the large static variables of the program and its libraries far memory. Their contents stay as they are.
/// Begins first, as make_ready() does, if there are any. Call it before main(). If other threads run already, variables
/// with first values (.data) stay local: a thread might use one while it is moved.
void use_static_memory() noexcept;

/// The same for the libraries that were loaded since. Any thread.
void use_static_memory_of_libraries() noexcept;

}  // namespace tonari::far
