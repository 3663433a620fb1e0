#pragma once

#include "fabric/engine.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <span>

// Accesses to memory of this program that may be unmapped or protected: they answer where a plain one would raise a
// signal. That memory may be far, and take its time to come: nothing is to be held.
namespace tonari::window {

/// True when `bytes` at `there`, on two pages at most, can be read, or also written. The kernel looks at a word on each
/// page, or adds 0 to it: half as dear as a copy by it.
bool is_reachable(std::byte* there, std::size_t bytes, bool to_write) noexcept;

/// Between `memory` and bulk memory. Answers ok or bad_address, as those below.
Status copy_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk,
                      bool to_memory) noexcept;

/// Between `memory` and memory that is there, by the kernel, or where that is not permitted, after it has looked at
/// each page.
Status copy_guarded(const job::Session& session, std::byte* memory, std::byte* other, std::size_t bytes,
                    bool to_memory) noexcept;

/// Between memory of this rank's own and what travels with heads. `in_program`: guarded; else it is tonari's.
Status copy_local(const job::Session& session, bool in_program, std::byte* local, std::byte* other, std::size_t bytes,
                  bool to_local) noexcept;

}  // namespace tonari::window
