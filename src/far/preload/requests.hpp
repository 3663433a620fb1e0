#pragma once

#include "far/channel.hpp"
#include "far/preload/extents.hpp"

namespace tonari::far {

/// Asks the keeper, and waits for the answer: 0 or an error number. Any thread of a program that is ready; nothing of
/// it may be locked that the keeper's answer needs, which is nothing but the agents.
int ask(Request::What what, Range range) noexcept;
/// Likewise.
tonari_far_statistics ask_for_statistics() noexcept;

}  // namespace tonari::far
