#pragma once

#include <cstdio>

namespace tonari::preload {

/// Gives a stream that was just opened a local buffer, if buffer_standard_streams() was called. Returns the stream,
/// which may be nullptr.
FILE* buffered(FILE* stream) noexcept;

/// Gives standard input and output local buffers. Call it once, before main(), if system calls do not reach absent
/// pages.
void buffer_standard_streams() noexcept;

}  // namespace tonari::preload
