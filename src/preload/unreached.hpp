#pragma once

#include "preload/address.hpp"
#include "preload/next.hpp"

#include <pthread.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

// Where the kernel reports only the program's own faults, a system call that meets an absent page fails with EFAULT.
// There are two ways out. A call that can be repeated is repeated after its memory was touched; if pages have left
// again in between, once more. A call that cannot be repeated, because data would be lost or cut, works with local
// memory, and the data is copied from or to there.
namespace tonari::preload {

/// The memory that system calls may fail to reach, because their faults are not reported: one large range, and a few
/// others.
struct Unreached {
  struct Other {
    Address start = 0;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t others_max = 300;

  // Relaxed: a thread that has an address of this memory got it from a thread that saw it set. For any other address it
  // does not matter if the old values are read.
  std::atomic<Address> start{0};
  std::atomic<std::size_t> bytes{0};  // 0: no such memory
  // Points to a page that reads as zeros in forked children, until they have set it anew: until then they may not have
  // the memory, and touching it would end them.
  std::atomic<const std::atomic<std::uint32_t>*> is_here{nullptr};
  // An entry is written before it is counted, and not changed afterwards. (1) pairs with (2).
  std::atomic<std::size_t> others_count{0};
  std::array<Other, others_max> others{};
  // Enclose the part of the memory that the program may have protected from reading or writing. Relaxed: a program that
  // protects memory before a call orders both itself.
  std::atomic<Address> protected_start{~Address{0}};
  std::atomic<Address> protected_end{0};

  /// Adds one of the others. Returns false if there are others_max already. Only one thread at a time may call it. Call
  /// it before pages of the memory can be absent: a thread that meets an absent page finds the memory here.
  bool add(Address first, std::size_t count) noexcept {
    const std::size_t index = others_count.load(std::memory_order_relaxed);  // changed only by add() and forget()
    if (index == others_max) return false;
    others[index] = {first, count};
    others_count.store(index + 1, std::memory_order_release);  // (1)
    return true;
  }
  [[nodiscard]] std::span<const Other> all_others() const noexcept {
    return {others.data(), others_count.load(std::memory_order_acquire)};  // (2)
  }
  /// Call it before the program protects memory that is here.
  void add_protected(Address first, std::size_t count) noexcept {
    const auto set = [](std::atomic<Address>& bound, Address wanted, auto is_beyond) {
      Address seen = bound.load(std::memory_order_relaxed);
      while (is_beyond(wanted, seen) && !bound.compare_exchange_weak(seen, wanted, std::memory_order_relaxed)) {
      }
    };
    set(protected_start, first, std::ranges::less{});
    set(protected_end, first + count, std::ranges::greater{});
  }
  /// Called in a forked child, which has one thread. It adds the memory that it has inherited.
  void forget() noexcept {
    bytes.store(0, std::memory_order_relaxed);
    others_count.store(0, std::memory_order_relaxed);
  }
};
extern constinit Unreached unreached;

/// Returns a word that is 0, in a page of its own, which reads as zeros in every forked child. Returns nullptr on an
/// error, and sets errno.
std::atomic<std::uint32_t>* map_word_of_this_process() noexcept;

inline bool may_be_unreached() noexcept {
  return unreached.bytes.load(std::memory_order_relaxed) != 0 ||
         unreached.others_count.load(std::memory_order_relaxed) != 0;
}

inline bool is_unreached(const void* start, std::size_t bytes) noexcept {
  // Checks with one comparison if any of [start, start + bytes) is in a range. For memory before the range, the
  // difference wraps around, and becomes small again only if the memory reaches into the range.
  const auto meets = [=](Address other, std::size_t count) {
    return address_of(start) - other + bytes < count + bytes;
  };
  if (meets(unreached.start.load(std::memory_order_relaxed), unreached.bytes.load(std::memory_order_relaxed)))
    return true;
  return std::ranges::any_of(unreached.all_others(),
                             [meets](const Unreached::Other& each) { return meets(each.start, each.bytes); });
}

// ---- Protected memory ----

// A page that the program has protected must not be touched here: the kernel then returns EFAULT, and raises no signal.

enum class Access : std::uint8_t { read, write };

inline bool may_be_protected(const void* start, std::size_t bytes) noexcept {
  return address_of(start) < unreached.protected_end.load(std::memory_order_relaxed) &&
         address_of(start) + bytes > unreached.protected_start.load(std::memory_order_relaxed);
}

/// Returns how many of the bytes come before the first page that the program has protected from `access`. Asks the
/// kernel, with a system call per absent page, if some may be protected.
std::size_t accessible(const void* start, std::size_t bytes, Access access) noexcept;

inline bool is_accessible(const void* start, std::size_t bytes, Access access) noexcept {
  return !may_be_protected(start, bytes) || accessible(start, bytes, access) == bytes;
}

// ---- Repeated calls ----

/// Memory that a call reads,
struct Bytes {
  const void* start;
  std::size_t bytes;
};
/// memory that it writes,
struct Room {
  void* start;
  std::size_t bytes;
};
/// and a text that it reads up to a zero.
struct Text {
  const char* text;
};
struct Texts {
  char* const* list;
};

/// Reads one byte of each unreached page, or rewrites it unchanged for Room, up to the first page that is protected
/// from that. Returns true if there were such pages.
bool touch(Bytes bytes) noexcept;
bool touch(Room room) noexcept;
bool touch(Text text) noexcept;
bool touch(Texts texts) noexcept;

template <class Answer>
bool is_fault(Answer answer) noexcept {
  if constexpr (std::is_pointer_v<Answer>) {
    return answer == nullptr && errno == EFAULT;
  } else {
    return answer == Answer(-1) && errno == EFAULT;
  }
}

/// Calls call() until it meets no absent page of `memory`, and returns its result.
template <class Call, class... Memory>
auto repeated(Call call, Memory... memory) {
  constexpr int tries_max = 1000;  // then the memory itself is invalid
  auto answer = call();
  for (int tries = 0; is_fault(answer) && tries < tries_max && (int{touch(memory)} | ...) != 0; ++tries)
    answer = call();
  return answer;
}

// ---- Local memory ----

/// Local memory for `bytes` or for a part of them: on the stack, one of some permanent pieces, or a mapping.
class Local {
 public:
  static constexpr std::size_t bytes_max = 64 << 20;  // larger transfers take several calls

  explicit Local(std::size_t bytes, bool is_kept_by_kernel = false) noexcept;
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  ~Local() { give_back(this); }

  /// Returns nullptr if there is no memory.
  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Calls call(), which may end the thread.
  template <class Call>
  auto during(Call call) {
    if (start_ == small_.data()) return call();
    decltype(call()) answer;
    pthread_cleanup_push(&Local::give_back, this);
    answer = call();
    pthread_cleanup_pop(0);
    return answer;
  }

 private:
  static void give_back(void* local) noexcept;

  std::byte* start_ = nullptr;
  std::size_t bytes_;
  alignas(512) std::array<std::byte, 1024> small_;  // aligned for O_DIRECT; small enough for any stack
};

/// A value that a call reads or writes. If it is in unreached memory, the call uses a local copy. A protected value is
/// left to the kernel: a page that can be read stays once it is here.
template <class Value>
class Mirrored {
 public:
  explicit Mirrored(Value* value, std::size_t bytes = sizeof(Value)) noexcept
      : value_(value),
        bytes_(std::min(bytes, sizeof(Value))),
        is_here_(value != nullptr && is_unreached(value, bytes_) && is_accessible(value, bytes_, Access::write)) {
    if (is_here_) {
      std::memcpy(static_cast<void*>(&here_), value, bytes_);
    } else {
      (void)touch(Bytes{value, bytes_});
    }
  }
  Mirrored(const Mirrored&) = delete;
  Mirrored& operator=(const Mirrored&) = delete;
  ~Mirrored() {
    if (is_here_) std::memcpy(static_cast<void*>(value_), &here_, bytes_);
  }
  [[nodiscard]] Value* get() noexcept { return is_here_ ? &here_ : value_; }

 private:
  Value* value_;
  std::size_t bytes_;
  bool is_here_;
  Value here_;
};

using Pieces = std::span<const iovec>;

[[nodiscard]] bool is_unreached(Pieces parts) noexcept;
/// Returns how many bytes one call of the kernel transfers at most, if it has these parts.
[[nodiscard]] std::size_t bytes_of(Pieces parts) noexcept;
/// Copy `bytes` bytes of the parts, after the first `skipped` ones, to or from local memory.
void gather(Pieces from, std::size_t skipped, std::byte* to, std::size_t bytes) noexcept;
void scatter(const std::byte* from, std::size_t bytes, Pieces to, std::size_t skipped) noexcept;
/// Returns how many of these bytes come before the first page that is protected from `access`.
[[nodiscard]] std::size_t accessible(Pieces parts, std::size_t skipped, std::size_t bytes, Access access) noexcept;
/// Returns how many bytes of the parts to fill in one call. Memory that may be protected is checked first, also the
/// pages that the call then does not fill.
[[nodiscard]] std::size_t bytes_at_once(Pieces parts) noexcept;
/// Returns what the first `skipped` bytes leave of the part where they end.
[[nodiscard]] iovec rest_of(Pieces parts, std::size_t skipped) noexcept;

/// Transfers `all` bytes through local memory, in several calls if they are more than it holds. transfer(bytes, done)
/// transfers the bytes after the first `done`, and returns their number, or -1. Another call follows only one that was
/// complete, and only if goes_on() returns true.
template <class Transfer, class GoesOn>
ssize_t in_several_calls(std::size_t all, std::size_t local_bytes, Transfer transfer, GoesOn goes_on) {
  for (std::size_t done = 0;;) {
    const std::size_t wanted = std::min(local_bytes, all - done);
    const ssize_t answer = transfer(wanted, done);
    if (answer < 0) return done != 0 ? static_cast<ssize_t>(done) : answer;
    done += static_cast<std::size_t>(answer);
    if (static_cast<std::size_t>(answer) != wanted || done == all || !goes_on()) return static_cast<ssize_t>(done);
  }
}

/// Has the kernel access protected memory.
template <class Call>
ssize_t call_on(iovec part, std::size_t done, Call call) {
  return call(static_cast<std::byte*>(part.iov_base), part.iov_len, done);
}

/// call(start, bytes, done) fills local memory after the first `done` bytes, and returns the number of bytes, or -1;
/// they are then copied to `parts`. A protected page ends the transfer. If it is the first one, call() gets its memory
/// instead, and the kernel reports the error: it does so without taking the bytes out of a stream.
template <class Call, class GoesOn>
[[gnu::cold, gnu::noinline]] ssize_t fill_locally(Pieces parts, Call call, GoesOn goes_on) {
  const std::size_t all = bytes_of(parts);
  Local local(std::min(all, bytes_at_once(parts)));
  if (local.start() == nullptr) return failed(ENOMEM, ssize_t{-1});
  const auto transfer = [&](std::size_t bytes, std::size_t done) {
    const std::size_t some = accessible(parts, done, bytes, Access::write);
    if (some == 0 && bytes != 0) return call_on(rest_of(parts, done), done, call);
    const ssize_t answer = local.during([&] { return call(local.start(), some, done); });
    if (answer > 0) scatter(local.start(), std::min(static_cast<std::size_t>(answer), some), parts, done);
    return answer;
  };
  return in_several_calls(all, local.bytes(), transfer, goes_on);
}

/// Copies `parts` to local memory for call(start, bytes, done). A piece with a protected page is not transferred: a
/// message must not be cut.
template <class Call, class GoesOn>
[[gnu::cold, gnu::noinline]] ssize_t take_locally(Pieces parts, Call call, GoesOn goes_on,
                                                  bool is_kept_by_kernel = false) {
  const std::size_t all = bytes_of(parts);
  Local local(all, is_kept_by_kernel);
  if (local.start() == nullptr) return failed(ENOMEM, ssize_t{-1});
  const auto transfer = [&](std::size_t bytes, std::size_t done) {
    const std::size_t some = accessible(parts, done, bytes, Access::read);
    if (some == 0 && bytes != 0) return call_on(rest_of(parts, done), done, call);
    if (some != bytes) return failed(EFAULT, ssize_t{-1});
    gather(parts, done, local.start(), bytes);
    return local.during([&] { return call(local.start(), bytes, done); });
  };
  return in_several_calls(all, local.bytes(), transfer, goes_on);
}

}  // namespace tonari::preload
