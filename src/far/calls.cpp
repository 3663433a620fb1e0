#include "far/channel.hpp"

#include <tonari/far.h>

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

// Implements tonari/far.h for a program that is linked with libtonari. The preload library exports functions of the
// same names. A program that is linked with a static libtonari finds these here first, and they call the preload
// library's.
namespace {

using What = tonari::far::Request::What;
static_assert(static_cast<int>(What::discard) == TONARI_FAR_DISCARD &&
              static_cast<int>(What::will_need) == TONARI_FAR_WILL_NEED &&
              static_cast<int>(What::done_with) == TONARI_FAR_DONE_WITH &&
              static_cast<int>(What::sequential) == TONARI_FAR_SEQUENTIAL &&
              static_cast<int>(What::random) == TONARI_FAR_RANDOM);

template <class Function>
Function* preloaded(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void* tonari_far_malloc(std::size_t bytes) {
  static auto* const real = preloaded<decltype(tonari_far_malloc)>("tonari_far_malloc");
  return real != nullptr ? real(bytes) : std::malloc(bytes);
}

void tonari_far_free(void* start) { std::free(start); }  // the preload library's free, if it is loaded

int tonari_far_advise(void* start, std::size_t bytes, int hint) {
  static auto* const real = preloaded<decltype(tonari_far_advise)>("tonari_far_advise");
  if (real != nullptr) return real(start, bytes, hint);
  const bool exists = hint == TONARI_FAR_DISCARD || (hint >= TONARI_FAR_WILL_NEED && hint <= TONARI_FAR_RANDOM);
  return exists ? 0 : EINVAL;
}

int tonari_far_available(void) {
  static auto* const real = preloaded<decltype(tonari_far_available)>("tonari_far_available");
  return real != nullptr ? real() : 0;
}

int tonari_far_get_statistics(tonari_far_statistics* into, std::size_t bytes) {
  static auto* const real = preloaded<decltype(tonari_far_get_statistics)>("tonari_far_get_statistics");
  if (real != nullptr) return real(into, bytes);
  if (into == nullptr) return EINVAL;
  std::memset(into, 0, bytes);
  return 0;
}
