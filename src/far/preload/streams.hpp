#pragma once

namespace tonari::far {

/// Standard input and output read and write through local memory. Once, before main(), if system calls do not reach
/// far memory.
void buffer_standard_streams() noexcept;

}  // namespace tonari::far
