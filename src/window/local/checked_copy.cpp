#include "window/local/checked_copy.hpp"

#include "fabric/transfer.hpp"
#include "window/local/atomic_words.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

namespace tonari::window {

bool is_reachable(std::byte* there, std::size_t bytes, bool to_write) noexcept {
  constexpr std::uintptr_t page_bytes = 4096;
  constexpr long nobody = 0;
  const auto is_word_reachable = [to_write](std::uintptr_t at) {
    auto* const word = reinterpret_cast<std::uint32_t*>(at & ~std::uintptr_t{3});
    if (to_write) {
      return ::syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, nobody, nobody, word,
                       FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
    }
    return ::syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, nobody, nobody, word, 0) >= 0 || errno == EAGAIN;
  };
  const auto first = reinterpret_cast<std::uintptr_t>(there);
  const std::uintptr_t last = first + bytes - 1;
  return is_word_reachable(first) && (first / page_bytes == last / page_bytes || is_word_reachable(last));
}

namespace {

// Called by the program's own thread, whose access brings pages that the kernel may not reach.
Status copy_paged(std::byte* memory, std::byte* other, std::size_t bytes, bool to_memory) noexcept {
  copy_bytes(to_memory ? memory : other, to_memory ? other : memory, bytes);
  return Status::ok;
}

}  // namespace

Status copy_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk,
                      bool to_memory) noexcept {
  if (engine.session().is_paged(memory, bulk.size())) {
    return copy_paged(memory, const_cast<std::byte*>(bulk.data()), bulk.size(), to_memory);
  }
  const job::Arena& arena = engine.session().arena();
  const auto place = static_cast<off_t>(arena.place_of(bulk.data()));
  const ssize_t copied = to_memory ? ::pread(arena.memory().number(), memory, bulk.size(), place)
                                   : ::pwrite(arena.memory().number(), memory, bulk.size(), place);
  return copied == static_cast<ssize_t>(bulk.size()) ? Status::ok : Status::bad_address;
}

Status copy_guarded(const job::Session& session, std::byte* memory, std::byte* other, std::size_t bytes,
                    bool to_memory) noexcept {
  if (session.is_paged(memory, bytes)) return copy_paged(memory, other, bytes, to_memory);
  if (session.guarded_copies()) {
    const fabric::DirectCopy copy(::getpid(), false);
    const auto there = reinterpret_cast<std::uint64_t>(memory);
    return to_memory ? copy.write(there, other, bytes) : copy.read(other, there, bytes);
  }
  constexpr std::size_t looked_at_most = 4096;  // at most two pages
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t piece = std::min(bytes - at, looked_at_most);
    if (!is_reachable(memory + at, piece, to_memory)) return Status::bad_address;
    copy_bytes(to_memory ? memory + at : other + at, to_memory ? other + at : memory + at, piece);
    at += piece;
  }
  return Status::ok;
}

Status copy_local(const job::Session& session, bool in_program, std::byte* local, std::byte* other, std::size_t bytes,
                  bool to_local) noexcept {
  if (bytes == 0) return Status::ok;
  if (in_program) return copy_guarded(session, local, other, bytes, to_local);
  copy_bytes(to_local ? local : other, to_local ? other : local, bytes);
  return Status::ok;
}

}  // namespace tonari::window
