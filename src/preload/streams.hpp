#pragma once

namespace tonari::preload {

/// Standard input and output read and write through local memory. Once, before main(), if system calls do not reach
/// unreached memory.
void buffer_standard_streams() noexcept;

}  // namespace tonari::preload
