#pragma once

#include "far/channel.hpp"
#include "far/preload/extents.hpp"

namespace tonari::far {

/// Sends a request to the keeper and waits for its reply: 0 or an error number. Any thread of a program that is ready.
/// The keeper needs only the agents for its reply, so the caller may hold any lock that they do not take.
int ask(Request::What what, Range range) noexcept;
/// The same for a request for statistics.
tonari_far_statistics ask_for_statistics() noexcept;

}  // namespace tonari::far
