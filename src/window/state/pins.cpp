#include "window/state/pins.hpp"

#include "base/error.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace tonari::window {

namespace {

std::string limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "which is not limited";
  return fmt::format("of which this process may lock {} KiB", limit.rlim_cur / 1024);
}

}  // namespace

Pins::Pages Pins::pages_of(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::size_t>(bytes.data());
  return {first / page * page, (first + bytes.size() + page - 1) / page * page};
}

void Pins::pin(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::lock_guard guard(mutex_);
  pinned_.push_back(pages_of(bytes));
  if (::mlock(bytes.data(), bytes.size()) == 0) return;
  const int error = errno;
  const Pages refused = pinned_.back();
  pinned_.pop_back();
  unlock_what_nobody_needs(refused);  // mlock may have locked some of it
  throw_system_error(error, fmt::format("locking {} bytes in memory, {}", bytes.size(), limit_text()),
                     "raise the limit (ulimit -l, or LimitMEMLOCK= of a service), or make the window without `pinned`");
}

void Pins::unpin(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const std::lock_guard guard(mutex_);
  const Pages pages = pages_of(bytes);
  const auto found = std::ranges::find(pinned_, pages);
  if (found == pinned_.end()) return;
  *found = pinned_.back();
  pinned_.pop_back();
  unlock_what_nobody_needs(pages);
}

// Moves from one pinned range to the next.
void Pins::unlock_what_nobody_needs(Pages pages) noexcept {
  for (std::size_t at = pages.first; at < pages.end;) {
    std::size_t free_until = pages.end;
    std::size_t pinned_until = at;
    for (const Pages& other : pinned_) {
      if (other.first <= at && at < other.end) pinned_until = std::max(pinned_until, other.end);
      if (other.first > at) free_until = std::min(free_until, other.first);
    }
    if (pinned_until > at) {
      at = pinned_until;
      continue;
    }
    ::munlock(reinterpret_cast<const void*>(at), free_until - at);
    at = free_until;
  }
}

}  // namespace tonari::window
