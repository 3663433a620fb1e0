// A window carries bytes.
// error: static assertion failed: a window carries bytes: T must be trivially copyable
#include <tonari/tonari.hpp>

#include <array>
#include <cstddef>
#include <string>

std::size_t words(tonari::Window& window) {
#ifdef WRONG
  return tonari::View<std::string>(window).local().size();
#else
  return tonari::View<std::array<char, 16>>(window).local().size();
#endif
}
