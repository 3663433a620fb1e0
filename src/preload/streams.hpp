#pragma once

namespace tonari::preload {

/// Gives standard input and output local buffers. Call it once, before main(), if system calls do not reach absent
/// pages.
void buffer_standard_streams() noexcept;

}  // namespace tonari::preload
