#pragma once

#include "window/remote/rdma_keys.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::window {

/// A copy between `local` and a part whose key is in use, to or from an offset in it. Answers when all is there.
/// Threads: any, with nothing held.
Status copy_by_key(WindowRuntime& runtime, const PartKey& key, Service service, std::uint64_t offset,
                   std::span<std::byte> local, bool in_program) noexcept;

}  // namespace tonari::window
