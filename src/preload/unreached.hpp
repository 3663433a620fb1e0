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

// Where the kernel tells only faults of the program itself, a system call that meets an absent page fails with EFAULT.
// Two ways out. A call that can be made again is: once it has failed so, its memory is touched, and it goes on (the
// pages may leave again in between, then again). One that cannot, since data would be lost or cut, works with local
// memory, from or to which they are copied.
namespace tonari::preload {

/// The memory of which the kernel may fail to reach some, since of system calls no faults are told.
struct Unreached {
  // Who has an address of it has it from somebody who saw it set, and who asks with another may see nothing yet:
  // relaxed.
  std::atomic<Address> start{0};
  std::atomic<std::size_t> bytes{0};  // 0: there is none
  // Points to a page that forked children find zeroed: the memory is not theirs, and touching it would end them.
  std::atomic<const std::atomic<std::uint32_t>*> is_here{nullptr};
};
extern constinit Unreached unreached;

/// A zero in a page of its own, which forked children find zeroed whatever was stored. Null: errno says why.
std::atomic<std::uint32_t>* map_word_of_this_process() noexcept;

inline bool may_be_unreached() noexcept { return unreached.bytes.load(std::memory_order_relaxed) != 0; }

inline bool is_unreached(const void* start, std::size_t bytes) noexcept {
  // One comparison for three: some of [start, start + bytes) is in the range. What lies in front of it wraps around,
  // and is small again only if it reaches into it.
  const Address place = address_of(start) - unreached.start.load(std::memory_order_relaxed);
  return place + bytes < unreached.bytes.load(std::memory_order_relaxed) + bytes;
}

// ---- Again ----

/// What a call gives to the kernel to read,
struct Bytes {
  const void* start;
  std::size_t bytes;
};
/// to write,
struct Room {
  void* start;
  std::size_t bytes;
};
/// and to read up to a zero.
struct Text {
  const char* text;
};
struct Texts {
  char* const* list;
};

/// Reads a byte of each page that is unreached, or writes one as it is; the answer is whether some were.
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

/// call(), until it meets no absent page of `memory`.
template <class Call, class... Memory>
auto repeated(Call call, Memory... memory) {
  constexpr int tries_max = 1000;  // then it is the memory itself that is wrong
  auto answer = call();
  for (int tries = 0; is_fault(answer) && tries < tries_max && (touch(memory) | ...); ++tries) answer = call();
  return answer;
}

// ---- Local ----

/// Memory that is here, for `bytes` or for a part: on the stack, one of a few large pieces, or of its own.
class Local {
 public:
  static constexpr std::size_t bytes_max = 64 << 20;  // more is done in pieces

  explicit Local(std::size_t bytes, bool is_kept_by_kernel = false) noexcept;
  Local(const Local&) = delete;
  Local& operator=(const Local&) = delete;
  ~Local() { give_back(this); }

  /// Null: there is no memory.
  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// call(), which may end the thread.
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
  alignas(page_bytes) std::array<std::byte, 2 * page_bytes> small_;  // aligned for O_DIRECT; of any thread's stack
};

/// A value that a call reads, or writes, or both; here while it does so.
template <class Value>
class Mirrored {
 public:
  explicit Mirrored(Value* value, std::size_t bytes = sizeof(Value)) noexcept
      : value_(value),
        bytes_(std::min(bytes, sizeof(Value))),
        is_here_(value != nullptr && is_unreached(value, bytes)) {
    if (is_here_) std::memcpy(static_cast<void*>(&here_), value, bytes_);
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
[[nodiscard]] std::size_t bytes_of(Pieces parts) noexcept;
void gather(Pieces from, std::byte* to, std::size_t bytes) noexcept;
void scatter(const std::byte* from, std::size_t bytes, Pieces to) noexcept;

/// call(start, bytes) fills local memory and answers how much, or -1; that much goes to `parts`.
template <class Call>
[[gnu::cold, gnu::noinline]] ssize_t fill_locally(Pieces parts, Call call) {
  Local local(bytes_of(parts));
  if (local.start() == nullptr) return failed(ENOMEM, ssize_t{-1});
  const ssize_t answer = local.during([&] { return call(local.start(), local.bytes()); });
  if (answer > 0) scatter(local.start(), std::min(static_cast<std::size_t>(answer), local.bytes()), parts);
  return answer;
}

/// call(start, bytes) takes what was in `parts`.
template <class Call>
[[gnu::cold, gnu::noinline]] ssize_t take_locally(Pieces parts, Call call, bool is_kept_by_kernel = false) {
  Local local(bytes_of(parts), is_kept_by_kernel);
  if (local.start() == nullptr) return failed(ENOMEM, ssize_t{-1});
  gather(parts, local.start(), local.bytes());
  return local.during([&] { return call(local.start(), local.bytes()); });
}

}  // namespace tonari::preload
