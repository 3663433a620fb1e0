// The destination comes first: pull(to, from), push(to, from).
// error: cannot convert 'tonari::GlobalAddress' to 'std::span<std::byte>'
#include <tonari/tonari.hpp>

#include <cstddef>
#include <span>

tonari::Status fetch(tonari::Window& window, std::span<std::byte> bytes) {
#ifdef WRONG
  return window.pull(window.at(tonari::JobRank{0}), bytes);
#else
  return window.pull(bytes, window.at(tonari::JobRank{0}));
#endif
}
