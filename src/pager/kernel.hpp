#pragma once

#include "pager/page.hpp"

#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

// Requests to the kernel, and how often they are repeated. Header only: a program's agent (far/preload) links nothing
// else.
namespace tonari::pager {

/// The kernel's result of an operation on absent pages. All of them can happen without an error of ours.
enum class Answer : std::uint8_t {
  ok,
  there,      ///< A page is already there: another thread was faster.
  gone,       ///< The range, or its whole process, is unmapped.
  busy,       ///< A page is pinned, or shared with a forked child: it cannot be moved now.
  no_memory,  ///< The kernel is out of memory.
  refused,    ///< Anything else.
};

/// How far an operation came; `answer` says why it went no further.
struct Progress {
  std::size_t bytes;
  Answer answer;
};

namespace kernel {

// Constants that the headers of Linux 6.1 lack. Ours have other names, so that newer headers do no harm.
inline constexpr std::uint64_t feature_protect_absent = 1 << 13;  // Linux 6.4: UFFD_FEATURE_WP_UNPOPULATED
inline constexpr std::uint64_t feature_poison = 1 << 14;          // Linux 6.6
inline constexpr std::uint64_t feature_move = 1 << 16;            // Linux 6.8
inline constexpr std::uint64_t resume_protected = 1 << 1;         // Linux 6.4: UFFDIO_CONTINUE_MODE_WP

struct MoveRequest {
  std::uint64_t to;
  std::uint64_t from;
  std::uint64_t bytes;
  std::uint64_t mode;
  std::int64_t moved;
};
struct PoisonRequest {
  uffdio_range range;
  std::uint64_t mode;
  std::int64_t poisoned;
};
static_assert(sizeof(MoveRequest) == 40 && sizeof(PoisonRequest) == 32);
inline constexpr unsigned long request_move = _IOWR(UFFDIO, 0x05, MoveRequest);
inline constexpr unsigned long request_poison = _IOWR(UFFDIO, 0x08, PoisonRequest);

constexpr Answer answer_to(int error) noexcept {
  switch (error) {
    case 0: return Answer::ok;
    case EEXIST: return Answer::there;
    case ENOENT:
    case ESRCH: return Answer::gone;
    case EBUSY: return Answer::busy;
    case ENOMEM: return Answer::no_memory;
    default: return Answer::refused;
  }
}

/// Makes requests, `make(done)` each, until all `bytes` are done or a request fails with another error than EAGAIN
/// (mappings are being changed, or a page is locked for a moment). `progress` reads from a request how far it came.
/// `System` has control(code, request), which returns an error number, and yield().
template <class System, class Make, class Progressed>
Progress go_on(System system, unsigned long code, std::size_t bytes, Make make, Progressed progress) noexcept {
  constexpr int tries_max = 100'000;  // gives up then: it must be a bug
  std::size_t done = 0;
  for (int tries = 0; done < bytes && tries < tries_max;) {
    auto request = make(done);
    const int error = system.control(code, request);
    if (error == 0) return {bytes, Answer::ok};
    if (error != EAGAIN) return {done, answer_to(error)};
    const std::int64_t came = progress(request);
    if (came > 0) {
      done += static_cast<std::size_t>(came);
      tries = 0;
    } else if (++tries % 16 == 0) {
      system.yield();
    }
  }
  return {done, done == bytes ? Answer::ok : Answer::busy};
}

/// Removes pages at `from` and places them at `to`.
template <class System>
Progress move(System system, Address to, Address from, std::size_t bytes) noexcept {
  const auto make = [&](std::size_t done) { return MoveRequest{to + done, from + done, bytes - done, 0, 0}; };
  return go_on(system, request_move, bytes, make, [](const MoveRequest& each) { return each.moved; });
}

/// Makes requests for all of `bytes` and skips pages that are there. Returns Answer::there if some were.
template <class System, class Make, class Progressed>
Answer place(System system, unsigned long code, std::size_t bytes, Make make, Progressed progress) noexcept {
  bool met = false;
  for (std::size_t done = 0; done < bytes; done += page_bytes) {
    const auto make_more = [&](std::size_t more) { return make(done + more); };
    const auto [more, answer] = go_on(system, code, bytes - done, make_more, progress);
    done += more;
    if (answer == Answer::ok) break;
    if (answer != Answer::there) return answer;
    met = true;  // the page at `done` was there
  }
  return met ? Answer::there : Answer::ok;
}

/// Returns what makes the requests to copy pages from `from`.
inline auto copy_requests(Address to, const std::byte* from, std::size_t bytes, std::uint64_t mode) noexcept {
  return [=](std::size_t done) {
    return uffdio_copy{.dst = to + done,
                       .src = reinterpret_cast<std::uint64_t>(from) + done,
                       .len = bytes - done,
                       .mode = mode,
                       .copy = 0};
  };
}
inline constexpr auto copied = [](const uffdio_copy& request) { return request.copy; };

/// Copies pages, up to the first that is present.
template <class System>
Progress copy(System system, Address to, const std::byte* from, std::size_t bytes, std::uint64_t mode = 0) noexcept {
  return go_on(system, UFFDIO_COPY, bytes, copy_requests(to, from, bytes, mode), copied);
}

/// Places pages of zeros where pages are absent. Returns Answer::there if some pages were present.
template <class System>
Answer zero(System system, Address to, std::size_t bytes) noexcept {
  const auto make = [&](std::size_t done) {
    return uffdio_zeropage{.range = {to + done, bytes - done}, .mode = 0, .zeropage = 0};
  };
  return place(system, UFFDIO_ZEROPAGE, bytes, make, [](const uffdio_zeropage& each) { return each.zeropage; });
}

/// Wakes the threads that wait for pages of the range: they touch them again.
template <class System>
void wake(System system, Address start, std::size_t bytes) noexcept {
  uffdio_range range{start, bytes};
  (void)system.control(UFFDIO_WAKE, range);  // fails only for a wrong range
}

/// Lets writes to the pages that are present wait, or go on.
template <class System>
Answer protect(System system, Address at, std::size_t bytes, bool writes_wait) noexcept {
  uffdio_writeprotect request{.range = {at, bytes}, .mode = 0};
  if (writes_wait) request.mode = UFFDIO_WRITEPROTECT_MODE_WP;
  const auto nothing = [](const uffdio_writeprotect&) { return std::int64_t{0}; };
  const auto again = [&](std::size_t) { return request; };
  return go_on(system, UFFDIO_WRITEPROTECT, bytes, again, nothing).answer;
}

}  // namespace kernel

}  // namespace tonari::pager
