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

namespace {

constexpr long nobody = 0;

std::uint32_t* word_at(std::uintptr_t address) noexcept {
  return reinterpret_cast<std::uint32_t*>(address & ~std::uintptr_t{3});
}

// Checks one word on each of at most two pages.
template <class IsReachable>
bool on_both_pages(const std::byte* memory, std::size_t bytes, IsReachable is_reachable) noexcept {
  constexpr std::uintptr_t page_bytes = 4096;
  const auto first = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t last = first + bytes - 1;
  return is_reachable(word_at(first)) && (first / page_bytes == last / page_bytes || is_reachable(word_at(last)));
}

// Calls `copy_piece(at, bytes)` for pieces on at most two pages each, until it returns false.
template <class CopyPiece>
Status in_checked_pieces(std::size_t bytes, CopyPiece copy_piece) noexcept {
  constexpr std::size_t piece_bytes_max = 4096;
  for (std::size_t at = 0; at < bytes; at += piece_bytes_max) {
    if (!copy_piece(at, std::min(bytes - at, piece_bytes_max))) return Status::bad_address;
  }
  return Status::ok;
}

Status load_checked(const job::Session& session, std::span<std::byte> to, const std::byte* memory) noexcept {
  if (session.guarded_copies()) {
    return fabric::DirectCopy(::getpid(), false).read(to.data(), reinterpret_cast<std::uint64_t>(memory), to.size());
  }
  return in_checked_pieces(to.size(), [&](std::size_t at, std::size_t bytes) {
    const bool readable = is_readable(memory + at, bytes);
    if (readable) copy_bytes(to.data() + at, memory + at, bytes);
    return readable;
  });
}

Status store_checked(const job::Session& session, std::byte* memory, std::span<const std::byte> from) noexcept {
  if (session.guarded_copies()) {
    return fabric::DirectCopy(::getpid(), false)
        .write(reinterpret_cast<std::uint64_t>(memory), from.data(), from.size());
  }
  return in_checked_pieces(from.size(), [&](std::size_t at, std::size_t bytes) {
    const bool writable = is_writable(memory + at, bytes);
    if (writable) copy_bytes(memory + at, from.data() + at, bytes);
    return writable;
  });
}

}  // namespace

bool is_readable(const std::byte* memory, std::size_t bytes) noexcept {
  return on_both_pages(memory, bytes, [](std::uint32_t* word) {
    return ::syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, nobody, nobody, word, 0) >= 0 || errno == EAGAIN;
  });
}

bool is_writable(std::byte* memory, std::size_t bytes) noexcept {
  return on_both_pages(memory, bytes, [](std::uint32_t* word) {
    return ::syscall(SYS_futex, word, FUTEX_WAKE_OP_PRIVATE, nobody, nobody, word,
                     FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) >= 0;
  });
}

// Paged memory is accessed by the program's own thread, whose access brings pages that the kernel may not reach.
Status load_by_kernel(fabric::Engine& engine, std::span<std::byte> bulk, const std::byte* memory) noexcept {
  if (engine.session().is_paged(memory, bulk.size())) {
    copy_bytes(bulk.data(), memory, bulk.size());
    return Status::ok;
  }
  const job::Arena& arena = engine.session().arena();
  const auto place = static_cast<off_t>(arena.place_of(bulk.data()));
  const ssize_t copied = ::pwrite(arena.memory().number(), memory, bulk.size(), place);
  return copied == static_cast<ssize_t>(bulk.size()) ? Status::ok : Status::bad_address;
}

Status store_by_kernel(fabric::Engine& engine, std::byte* memory, std::span<const std::byte> bulk) noexcept {
  if (engine.session().is_paged(memory, bulk.size())) {
    copy_bytes(memory, bulk.data(), bulk.size());
    return Status::ok;
  }
  const job::Arena& arena = engine.session().arena();
  const auto place = static_cast<off_t>(arena.place_of(bulk.data()));
  const ssize_t copied = ::pread(arena.memory().number(), memory, bulk.size(), place);
  return copied == static_cast<ssize_t>(bulk.size()) ? Status::ok : Status::bad_address;
}

Status load_local(const job::Session& session, bool in_program, std::span<std::byte> to,
                  const std::byte* memory) noexcept {
  if (to.empty()) return Status::ok;
  if (in_program && !session.is_paged(memory, to.size())) return load_checked(session, to, memory);
  copy_bytes(to.data(), memory, to.size());
  return Status::ok;
}

Status store_local(const job::Session& session, bool in_program, std::byte* memory,
                   std::span<const std::byte> from) noexcept {
  if (from.empty()) return Status::ok;
  if (in_program && !session.is_paged(memory, from.size())) return store_checked(session, memory, from);
  copy_bytes(memory, from.data(), from.size());
  return Status::ok;
}

}  // namespace tonari::window
