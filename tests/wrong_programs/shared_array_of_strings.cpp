// Shared memory carries bytes.
// error: static assertion failed: shared memory carries bytes: T must be trivially copyable
#include <tonari/tonari.hpp>

#include <array>
#include <cstddef>
#include <string>

std::size_t words(tonari::Job& job) {
#ifdef WRONG
  const tonari::shared_array<std::string> array(job, 10);
  return array.size();
#else
  const tonari::shared_array<std::array<char, 16>> array(job, 10);
  return array.size();
#endif
}
