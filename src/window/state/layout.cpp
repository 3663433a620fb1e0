#include "window/state/layout.hpp"

#include "window/locks/lock_layout.hpp"

#include <unistd.h>

#include <limits>

namespace tonari::window {

namespace {

constexpr std::uint64_t huge_page_bytes = 2 << 20;

/// Places things one after the other, until a number overflows.
class Cursor {
 public:
  explicit Cursor(std::uint64_t start) noexcept : at_(start) {}

  std::uint64_t take(std::uint64_t bytes, std::uint64_t alignment) noexcept {
    constexpr auto max = std::numeric_limits<std::uint64_t>::max() / 2;
    const std::uint64_t start = (at_ + alignment - 1) / alignment * alignment;
    overflow_ = overflow_ || bytes > max || start > max - bytes;
    at_ = overflow_ ? 0 : start + bytes;
    return start;
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return overflow_ ? 0 : at_; }

 private:
  std::uint64_t at_;
  bool overflow_ = false;
};

}  // namespace

std::uint64_t Layout::lay_out(std::span<const Gift> gifts, std::span<Member> members) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Cursor cursor(fixed_bytes(gifts.size()));
  for (std::size_t i = 0; i < gifts.size(); ++i) {
    const Gift& gift = gifts[i];
    Member& member = members[i];
    member.bytes = gift.bytes;
    member.in_program = gift.in_program ? 1 : 0;
    member.locks = gift.locks;
    member.notifications = gift.notifications;
    if (gift.rights_differ) member.rights_at = cursor.take(gifts.size(), line_bytes);
    member.notifications_at = cursor.take(gift.notifications * sizeof(std::uint64_t), line_bytes);
    member.locks_at = cursor.take(gift.locks * lock_bytes(gifts.size()), line_bytes);
  }
  // Parts have pages of their own, because their rights protect them, and huge pages where that makes sense.
  for (std::size_t i = 0; i < gifts.size(); ++i) {
    const bool huge = gifts[i].bytes >= huge_page_bytes;
    if (!gifts[i].in_program) members[i].place = cursor.take(gifts[i].bytes, huge ? huge_page_bytes : page);
  }
  cursor.take(0, page);
  return cursor.end();
}

}  // namespace tonari::window
