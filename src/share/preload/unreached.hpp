#pragma once

#include <cstddef>

/// What a rank tells the preload in it, found by its name: system calls that meet absent pages of [start, start +
/// bytes) would fail. 0 bytes: there is no such memory any more. One thread at a time. Answers 0, or an error number.
extern "C" int tonari_share_unreached(void* start, std::size_t bytes) noexcept;

namespace tonari::share {

inline constexpr const char* name_of_unreached = "tonari_share_unreached";
using TellUnreached = decltype(tonari_share_unreached);

}  // namespace tonari::share
