#include "far/preload/begin.hpp"
#include "far/preload/memory.hpp"
#include "far/preload/real.hpp"
#include "far/preload/requests.hpp"
#include "preload/exported.hpp"

#include <tonari/far.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

// Implements tonari/far.h inside the preload library; libtonari calls these functions.
using namespace tonari::far;

/// Allocates from the arena, however little; from malloc if there is no arena or no room. free() frees it, too.
TONARI_EXPORTED void* tonari_far_malloc(std::size_t bytes) {
  if (bytes != 0 && make_ready()) {
    if (const Address start = take(bytes, page_bytes, Extents::is_allocated)) return pointer_to(start);
  }
  return std::malloc(bytes);
}

TONARI_EXPORTED int tonari_far_available() { return make_ready() ? 1 : 0; }

TONARI_EXPORTED void tonari_far_free(void* start) { std::free(start); }

/// `what` is a number of Request::What.
TONARI_EXPORTED int tonari_far_advise(void* start, std::size_t bytes, int what) {
  const Range bounds{address_of(start), bytes};
  const Address first = bounds.start / page_bytes * page_bytes;
  const Range range = first_far_part_of({first, to_whole_pages(bounds.end() - first)});
  const auto wanted = static_cast<Request::What>(what);
  switch (wanted) {
    case Request::What::discard:
      if (range != bounds) return EINVAL;
      break;
    case Request::What::will_need:
    case Request::What::done_with:
    case Request::What::sequential:
    case Request::What::random: break;
    default: return EINVAL;
  }
  if (range.is_empty() || !is_ready()) return ENOMEM;
  int error = 0;
  const bool is_whole = for_each_used(range, [&](const Extents::Extent& part) {
    if ((part.marks & Extents::not_paged) != 0 || error != 0) return;
    const bool discards = wanted == Request::What::discard;
    error = discards ? discard(wanted, part, LockedPages::stay) : ask(wanted, part);
  });
  return error == 0 && !is_whole ? ENOMEM : error;
}

TONARI_EXPORTED int tonari_far_get_statistics(tonari_far_statistics* into, std::size_t bytes) {
  if (into == nullptr) return EINVAL;
  std::memset(into, 0, bytes);
  if (!make_ready()) return 0;
  const tonari_far_statistics found = ask_for_statistics();
  std::memcpy(into, &found, std::min(bytes, sizeof found));
  return 0;
}
