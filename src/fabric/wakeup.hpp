#pragma once

#include <cstdint>

namespace tonari::fabric {

/// When the service thread of a rank is woken for what it is told, where nobody there looks at the rings: that takes a
/// core from whoever computes. Later: who tells sees to that, or the rank looks by itself when it needs to know. Ranks
/// of other hosts are woken by what comes.
enum class Wakeup : std::uint8_t { now, later };

}  // namespace tonari::fabric
