#pragma once

#include <cstddef>

/// A function of the preload library, found by its name. Tells it that system calls would fail at absent pages of
/// [start, start + bytes). With 0 bytes there is no such memory any more. One thread at a time. Returns 0 or an error
/// number.
extern "C" int tonari_share_unreached(void* start, std::size_t bytes) noexcept;

namespace tonari::share {

inline constexpr const char* name_of_unreached = "tonari_share_unreached";
using TellUnreached = decltype(tonari_share_unreached);

}  // namespace tonari::share
