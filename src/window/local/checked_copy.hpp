#pragma once

#include "fabric/engine.hpp"

#include <tonari/status.hpp>

#include <cstddef>
#include <span>

// Checked copies: accesses to memory of this program that may be unmapped or protected. They return a status where a
// plain access would raise a signal. The memory may be far memory and take long to arrive, so no lock may be held.
// load_...() copies out of the memory to be checked, store_...() into it; the other side of the copy exists for sure.
namespace tonari::window {

/// Return true if `bytes` at `memory`, on at most two pages, can be read, or also written. The kernel reads a word on
/// each page, or adds 0 to it: half the cost of a copy by the kernel.
bool is_readable(const std::byte* memory, std::size_t bytes) noexcept;
bool is_writable(std::byte* memory, std::size_t bytes) noexcept;

/// Copy between `memory` and this host's bulk memory. Return ok or bad_address, as do the functions below.
Status load_by_kernel(fabric::Engine& engine, std::span<std::byte> bulk, const std::byte* memory) noexcept;
Status store_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk) noexcept;

/// Copy between this rank's own memory and data that travel with heads. `in_program`: a checked copy, by the kernel if
/// that is permitted, otherwise after a check of each page. Otherwise the memory is tonari's.
Status load_local(const job::Session& session, bool in_program, std::span<std::byte> to,
                  const std::byte* memory) noexcept;
Status store_local(const job::Session& session, bool in_program, std::byte* memory,
                   std::span<const std::byte> from) noexcept;

}  // namespace tonari::window
