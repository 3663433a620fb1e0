// A push may fail.
// error: ignoring returned value of type 'tonari::Status', declared with attribute 'nodiscard'
#include <tonari/tonari.hpp>

#include <cstddef>
#include <span>

#pragma GCC diagnostic error "-Wunused-result"

bool give(tonari::Window& window, tonari::JobRank rank, std::span<const std::byte> bytes) {
#ifdef WRONG
  window.push(window.at(rank), bytes);
  return true;
#else
  return window.push(window.at(rank), bytes) == tonari::Status::ok;
#endif
}
