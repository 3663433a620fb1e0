#pragma once

#include "fabric/engine.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <span>

// Checked copies: accesses to memory of this program that may be unmapped or protected. They return a status where a
// plain access would raise a signal. The memory may be far memory and take long to arrive, so no lock may be held.
namespace tonari::window {

/// Returns true if `bytes` at `there`, on at most two pages, can be read, or also written. The kernel reads a word on
/// each page, or adds 0 to it: half the cost of a copy by the kernel.
bool is_reachable(std::byte* there, std::size_t bytes, bool to_write) noexcept;

/// Copies between `memory` and bulk memory. Returns ok or bad_address, as do the functions below.
Status copy_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk,
                      bool to_memory) noexcept;

/// Copies between `memory` and memory that exists: by the kernel; if that is not permitted, after a check of each page.
Status copy_guarded(const job::Session& session, std::byte* memory, std::byte* other, std::size_t bytes,
                    bool to_memory) noexcept;

/// Copies between this rank's own memory and data that travel with heads. `in_program`: a checked copy; otherwise the
/// memory is tonari's.
Status copy_local(const job::Session& session, bool in_program, std::byte* local, std::byte* other, std::size_t bytes,
                  bool to_local) noexcept;

}  // namespace tonari::window
