#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/streams.hpp"
#include "preload/unreached.hpp"
#include "share/preload/unreached.hpp"

#include <atomic>
#include <cerrno>
#include <cstdint>

// For ordinary users the kernel reports no faults of system calls, so libc's calls are wrapped (preload/unreached.hpp).
// `tonari run` loads this library in that case. It does nothing until a rank reports its shared memory.
using namespace tonari::preload;

namespace {

[[gnu::constructor]] void start_wrapping() noexcept {
  find_all_next();
  buffer_standard_streams();
}

}  // namespace

TONARI_EXPORTED int tonari_share_unreached(void* start, std::size_t bytes) noexcept {
  unreached.bytes.store(0, std::memory_order_relaxed);
  if (bytes == 0) return 0;
  static constinit std::atomic<std::uint32_t>* word = nullptr;
  if (word == nullptr) word = map_word_of_this_process();
  if (word == nullptr) return errno;
  word->store(1, std::memory_order_relaxed);
  unreached.is_here.store(word, std::memory_order_release);  // the word is 1: pairs with touch()
  unreached.start.store(address_of(start), std::memory_order_relaxed);
  unreached.bytes.store(bytes, std::memory_order_relaxed);
  return 0;
}
