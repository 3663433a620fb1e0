#pragma once

#include "pager/page.hpp"

#include <tonari/status.hpp>

#include <algorithm>
#include <cstdint>

namespace tonari::far {

/// Calls visit(place, bytes) for the part of a range in each block of 2 MiB, until a call does not return ok.
template <class Visit>
Status for_each_block(std::uint64_t place, std::uint64_t bytes, Visit visit) noexcept {
  Status status = Status::ok;
  for (const std::uint64_t end = place + bytes; place < end && status == Status::ok;) {
    const std::uint64_t until = std::min(end, (place / pager::block_bytes + 1) * pager::block_bytes);
    status = visit(place, until - place);
    place = until;
  }
  return status;
}

}  // namespace tonari::far
