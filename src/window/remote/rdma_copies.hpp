#pragma once

#include "window/local/direction.hpp"
#include "window/remote/rdma_keys.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace tonari::window {

/// Copies between `local` and a part whose key is in use, from or to an offset in the part. Returns when the copy is
/// complete.
/// Threads: any, with no lock held.
template <Direction D>
Status copy_by_key(WindowRuntime& runtime, const PartKey& key, std::uint64_t offset, std::span<typename D::Local> local,
                   bool in_program) noexcept;

}  // namespace tonari::window
