#include "preload/unreached.hpp"

#include "preload/system_calls.hpp"

#include <sys/mman.h>

#include <atomic>

extern "C" {
[[gnu::visibility("hidden")]] extern tonari::preload::AnyNext start_of_next[] asm("__start_tonari_next");
[[gnu::visibility("hidden")]] extern tonari::preload::AnyNext end_of_next[] asm("__stop_tonari_next");
}

namespace tonari::preload {

constinit Unreached unreached{};

namespace {

bool is_here() noexcept {
  const auto* const here = unreached.is_here.load(std::memory_order_acquire);
  return here != nullptr && here->load(std::memory_order_acquire) != 0;
}

// Calls visit(pointer) for one byte of each page that may be absent, up to the first page that is protected. Returns
// true if there were any. Does nothing in a forked child that may not have the memory, and would end here; the kernel
// then reports the error.
template <class Visit>
bool for_each_page(const void* start, std::size_t bytes, Access access, Visit visit) noexcept {
  if (start == nullptr || !is_unreached(start, bytes) || !is_here()) return false;
  const std::size_t some = accessible(start, bytes, access);
  const auto visit_in = [&](Address from, std::size_t count) {
    const Address first = std::max(address_of(start), from);
    const Address end = std::min(address_of(start) + some, from + count);
    for (Address at = first; at < end; at = (at / page_bytes + 1) * page_bytes) visit(pointer_to(at));
    return first < end;
  };
  bool met = visit_in(unreached.start.load(std::memory_order_relaxed), unreached.bytes.load(std::memory_order_relaxed));
  for (const auto& [first, count] : unreached.all_others()) met |= visit_in(first, count);
  return met;
}

// Returns 0 if the kernel could access all of the pages, EFAULT if the first that it could not is absent, and another
// error if that one is protected. Memory that can only be written can be read, too.
int try_access(Address start, std::size_t bytes, Access access) noexcept {
  const auto populate = [&](int advice) { return error_of(system_call(SYS_madvise, start, bytes, advice)); };
  const int error = access == Access::read ? populate(MADV_POPULATE_READ) : EINVAL;
  return error == EINVAL ? populate(MADV_POPULATE_WRITE) : error;
}

// Permanent memory, because mapping and unmapping takes longer than most calls. A thread that finds no free piece maps
// its own.
template <std::size_t bytes, std::size_t count>
class PermanentPieces {
 public:
  static constexpr std::size_t piece_bytes = bytes;

  [[nodiscard]] std::byte* take() noexcept {
    for (std::size_t i = 0; i < count; ++i) {
      if (!in_use_[i].exchange(true, std::memory_order_acquire)) return all_[i].data();  // pairs with give_back()
    }
    return nullptr;
  }
  // Returns false if it is no piece.
  bool give_back(const std::byte* piece) noexcept {
    const std::size_t place = address_of(piece) - address_of(all_.data());
    if (place >= sizeof all_) return false;
    in_use_[place / bytes].store(false, std::memory_order_release);  // pairs with take()
    return true;
  }

 private:
  alignas(page_bytes) std::array<std::array<std::byte, bytes>, count> all_{};
  std::array<std::atomic<bool>, count> in_use_{};
};
constinit PermanentPieces<32 << 10, 32> small_pieces{};
constinit PermanentPieces<1 << 20, 8> large_pieces{};

std::byte* map(std::size_t bytes) noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const std::size_t whole = to_whole_pages(bytes + 1);
  const long at = system_call(SYS_mmap, nullptr, whole, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return nullptr;
  (void)system_call(SYS_madvise, at, whole, MADV_HUGEPAGE);  // on failure: small pages, slower
  return static_cast<std::byte*>(pointer_to(static_cast<Address>(at)));
}

}  // namespace

std::atomic<std::uint32_t>* map_word_of_this_process() noexcept {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  const long at = system_call(SYS_mmap, nullptr, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (is_error(at)) return failed(error_of(at), nullptr);
  const long wiped = system_call(SYS_madvise, at, page_bytes, MADV_WIPEONFORK);
  if (!is_error(wiped)) return static_cast<std::atomic<std::uint32_t>*>(pointer_to(static_cast<Address>(at)));
  (void)system_call(SYS_munmap, at, page_bytes);
  return failed(error_of(wiped), nullptr);
}

std::size_t accessible(const void* start, std::size_t bytes, Access access) noexcept {
  if (!may_be_protected(start, bytes)) [[likely]]
    return bytes;
  const Address end = address_of(start) + bytes;
  Address at = address_of(start) / page_bytes * page_bytes;
  for (std::size_t some = to_whole_pages(end - at); at < end;) {
    const int error = try_access(at, std::min(some, to_whole_pages(end - at)), access);
    if (error == 0) {
      at += some;
      some *= 2;
    } else if (some != page_bytes) {
      some = page_bytes;
    } else if (error == EFAULT) {
      at += some;
    } else {
      return std::max(at, address_of(start)) - address_of(start);
    }
  }
  return bytes;
}

void find_all_next() noexcept {
  const int before = errno;
  for (AnyNext* each = start_of_next; each != end_of_next; ++each) (void)each->find();
  errno = before;
}

bool touch(Bytes bytes) noexcept {
  return for_each_page(bytes.start, bytes.bytes, Access::read,
                       [](void* byte) { (void)*static_cast<volatile const std::byte*>(byte); });
}

// Writes, because a page that was only read may stay write-protected where writes are tracked.
bool touch(Room room) noexcept {
  return for_each_page(room.start, room.bytes, Access::write, [](void* start) {
    std::atomic_ref byte(*static_cast<unsigned char*>(start));
    unsigned char value = byte.load(std::memory_order_relaxed);
    // other threads' writes to the byte are kept
    while (!byte.compare_exchange_weak(value, value, std::memory_order_relaxed)) {
    }
  });
}

bool touch(Text text) noexcept {
  const char* at = text.text;
  while (touch(Bytes{at, 1})) {
    const std::size_t rest = page_bytes - address_of(at) % page_bytes;
    if (std::memchr(at, 0, rest) != nullptr) return true;
    at += rest;
  }
  return at != text.text;
}

bool touch(Texts texts) noexcept {
  if (texts.list == nullptr) return false;
  bool met = false;
  std::size_t count = 0;
  for (; texts.list[count] != nullptr; ++count) met |= touch(Text{texts.list[count]});
  return touch(Bytes{texts.list, (count + 1) * sizeof(char*)}) || met;
}

Local::Local(std::size_t bytes, bool is_kept_by_kernel) noexcept : bytes_(std::min(bytes, bytes_max)) {
  if (!is_kept_by_kernel) {
    if (bytes_ <= small_.size()) {
      start_ = small_.data();
    } else if (bytes_ <= small_pieces.piece_bytes) {
      start_ = small_pieces.take();
    } else if (bytes_ <= large_pieces.piece_bytes) {
      start_ = large_pieces.take();
    }
  }
  if (start_ == nullptr) start_ = map(bytes_);
}

void Local::give_back(void* local) noexcept {
  const Local& self = *static_cast<const Local*>(local);
  if (self.start_ == nullptr || self.start_ == self.small_.data()) return;
  if (small_pieces.give_back(self.start_) || large_pieces.give_back(self.start_)) return;
  (void)system_call(SYS_munmap, self.start_, to_whole_pages(self.bytes_ + 1));
}

bool is_unreached(Pieces parts) noexcept {
  if (!may_be_unreached()) [[likely]]
    return false;
  return is_unreached(parts.data(), parts.size_bytes()) ||
         std::ranges::any_of(parts, [](const iovec& part) { return is_unreached(part.iov_base, part.iov_len); });
}

std::size_t bytes_of(Pieces parts) noexcept {
  constexpr std::size_t transfer_max = 0x7ffff000;  // Linux's MAX_RW_COUNT; see write(2)
  std::size_t all = 0;
  for (const iovec& part : parts) all += std::min(part.iov_len, transfer_max);  // at most IOV_MAX parts
  return std::min(all, transfer_max);
}

std::size_t bytes_at_once(Pieces parts) noexcept {
  constexpr std::size_t protected_max = 4 << 20;
  const bool some_may_be =
      std::ranges::any_of(parts, [](const iovec& part) { return may_be_protected(part.iov_base, part.iov_len); });
  return some_may_be ? protected_max : Local::bytes_max;
}

namespace {

// Calls visit(start, bytes) for the parts of `bytes` bytes after the first `skipped`.
template <class Visit>
void for_each_part(Pieces parts, std::size_t skipped, std::size_t bytes, Visit visit) noexcept {
  for (const iovec& part : parts) {
    const std::size_t before = std::min(part.iov_len, skipped);
    const std::size_t some = std::min(part.iov_len - before, bytes);
    if (some != 0) visit(static_cast<std::byte*>(part.iov_base) + before, some);
    skipped -= before;
    bytes -= some;
  }
}

}  // namespace

void gather(Pieces from, std::size_t skipped, std::byte* to, std::size_t bytes) noexcept {
  for_each_part(from, skipped, bytes, [&to](const std::byte* start, std::size_t some) {
    std::memcpy(to, start, some);
    to += some;
  });
}

void scatter(const std::byte* from, std::size_t bytes, Pieces to, std::size_t skipped) noexcept {
  for_each_part(to, skipped, bytes, [&from](std::byte* start, std::size_t some) {
    std::memcpy(start, from, some);
    from += some;
  });
}

std::size_t accessible(Pieces parts, std::size_t skipped, std::size_t bytes, Access access) noexcept {
  std::size_t all = 0;
  bool goes_on = true;
  for_each_part(parts, skipped, bytes, [&](const std::byte* start, std::size_t some) {
    if (!goes_on) return;
    const std::size_t here = accessible(start, some, access);
    all += here;
    goes_on = here == some;
  });
  return all;
}

iovec rest_of(Pieces parts, std::size_t skipped) noexcept {
  for (const iovec& part : parts) {
    if (skipped < part.iov_len) return {static_cast<std::byte*>(part.iov_base) + skipped, part.iov_len - skipped};
    skipped -= part.iov_len;
  }
  return {};
}

}  // namespace tonari::preload
