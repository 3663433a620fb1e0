#pragma once

#include <cstdint>

namespace tonari::fabric {

/// Whether a sender wakes the receiver's service thread, in case no thread of the receiver polls. That takes a core
/// from a thread that computes. `later`: the sender wakes it afterwards, or the receiver polls by itself when it needs
/// the news. Ranks of other hosts are always woken by arriving data.
enum class Wakeup : std::uint8_t { now, later };

}  // namespace tonari::fabric
