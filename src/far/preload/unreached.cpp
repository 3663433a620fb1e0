#include "far/preload/unreached.hpp"

#include "far/preload/next.hpp"

#include <sys/mman.h>

extern "C" {
[[gnu::visibility("hidden")]] extern tonari::far::AnyNext start_of_next[] asm("__start_tonari_far_next");
[[gnu::visibility("hidden")]] extern tonari::far::AnyNext end_of_next[] asm("__stop_tonari_far_next");
}

namespace tonari::far {

namespace {

// The part that may be absent, and is not a forked child's, which would end here; else the kernel says what is wrong.
Range unreached_part(Bytes bytes) noexcept {
  if (bytes.start == nullptr || !is_unreached(bytes.start, bytes.bytes) || !is_ready()) return {};
  return Range{address_of(bytes.start), bytes.bytes}.cut_to(arena());
}

}  // namespace

void find_all_next() noexcept {
  const int before = errno;
  for (AnyNext* each = start_of_next; each != end_of_next; ++each) (void)each->find();
  errno = before;
}

bool touch(Bytes bytes) noexcept {
  const Range part = unreached_part(bytes);
  if (part.is_empty()) return false;
  for (Address at = part.start; at < part.end(); at = (at / page_bytes + 1) * page_bytes) {
    (void)*static_cast<volatile const std::byte*>(pointer_to(at));
  }
  return true;
}

bool touch(Text text) noexcept {
  if (unreached_part({text.text, 1}).is_empty()) return false;
  return touch(Bytes{text.text, std::strlen(text.text) + 1});
}

bool touch(Texts texts) noexcept {
  if (texts.list == nullptr) return false;
  bool met = false;
  std::size_t count = 0;
  for (; texts.list[count] != nullptr; ++count) met |= touch(Text{texts.list[count]});
  return touch(Bytes{texts.list, (count + 1) * sizeof(char*)}) || met;
}

Local::Local(std::size_t bytes, bool is_kept_by_kernel) noexcept : bytes_(std::min(bytes, bytes_max)) {
  if (bytes_ <= small_.size() && !is_kept_by_kernel) {
    start_ = small_.data();
    return;
  }
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const long at = system_call(SYS_mmap, nullptr, bytes_ + 1, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (!is_error(at)) start_ = static_cast<std::byte*>(pointer_to(static_cast<Address>(at)));
}

void Local::unmap(void* local) noexcept {
  const Local& self = *static_cast<const Local*>(local);
  if (self.start_ == nullptr || self.start_ == self.small_.data()) return;
  (void)system_call(SYS_munmap, self.start_, self.bytes_ + 1);
}

bool is_unreached(Pieces parts) noexcept {
  if (program.unreached_bytes.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  return is_unreached(parts.data(), parts.size_bytes()) ||
         std::ranges::any_of(parts, [](const iovec& part) { return is_unreached(part.iov_base, part.iov_len); });
}

std::size_t bytes_of(Pieces parts) noexcept {
  std::size_t all = 0;
  for (const iovec& part : parts) all += std::min(part.iov_len, Local::bytes_max);  // there are no more than IOV_MAX
  return all;
}

void gather(Pieces from, std::byte* to, std::size_t bytes) noexcept {
  for (const iovec& part : from) {
    const std::size_t some = std::min(part.iov_len, bytes);
    if (some != 0) std::memcpy(to, part.iov_base, some);
    to += some;
    bytes -= some;
  }
}

void scatter(const std::byte* from, std::size_t bytes, Pieces to) noexcept {
  for (const iovec& part : to) {
    const std::size_t some = std::min(part.iov_len, bytes);
    if (some != 0) std::memcpy(part.iov_base, from, some);
    from += some;
    bytes -= some;
  }
}

}  // namespace tonari::far
