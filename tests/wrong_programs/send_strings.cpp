// The bytes of a std::string are a pointer, which means nothing to another process.
// error: static assertion failed: only trivially copyable values, contiguous ranges of them
#include <tonari/tonari.hpp>

#include <string>
#include <vector>

tonari::Status give(tonari::Communicator& world, const std::vector<std::string>& words) {
#ifdef WRONG
  return world.send(words, tonari::Rank{1});
#else
  for (const std::string& word : words) {
    if (const auto status = world.send(word, tonari::Rank{1}); status != tonari::Status::ok) return status;
  }
  return tonari::Status::ok;
#endif
}
