#include "far/remote_space.hpp"

#include "base/futex.hpp"

#include <sys/uio.h>

#include <chrono>
#include <thread>
#include <utility>

namespace tonari::far {

using pager::Address;
using pager::block_bytes;
using pager::Buffer;
using pager::PageSet;

RemoteSpace::RemoteSpace(pager::Userfaultfd faults, Channel& channel, const Hello& hello, pid_t program) noexcept
    : Space(std::move(faults)), channel_(channel), buffers_(hello.buffers), program_(program) {}

// The preload has done it, for all that may become a region.
void RemoteSpace::prepare(Address /*start*/, std::size_t /*bytes*/) {}

void RemoteSpace::drop(Address start, std::size_t bytes) noexcept {
  (void)ask({.what = Command::What::drop, .address = start, .bytes = bytes});
}

PageSet RemoteSpace::take_out(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return ask({.what = Command::What::take_out, .buffer = buffer, .address = block, .pages = pages}).pages;
}

PageSet RemoteSpace::move_in(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return ask({.what = Command::What::move_in, .buffer = buffer, .address = block, .pages = pages}).pages;
}

bool RemoteSpace::stock(Buffer buffer) noexcept { return ask({.what = Command::What::stock, .buffer = buffer}).done; }

void RemoteSpace::empty(Buffer buffer) noexcept { (void)ask({.what = Command::What::empty, .buffer = buffer}); }

std::byte* RemoteSpace::view(Buffer /*buffer*/, std::size_t /*place*/) noexcept { return nullptr; }

bool RemoteSpace::read(Buffer buffer, std::size_t place, std::span<std::byte> into) noexcept {
  const iovec here{into.data(), into.size()};
  const iovec there{reinterpret_cast<void*>(address_of(buffer, place)), into.size()};
  return ::process_vm_readv(program_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(into.size());
}

bool RemoteSpace::write(Buffer buffer, std::size_t place, std::span<const std::byte> from) noexcept {
  const iovec here{const_cast<std::byte*>(from.data()), from.size()};
  const iovec there{reinterpret_cast<void*>(address_of(buffer, place)), from.size()};
  return ::process_vm_writev(program_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(from.size());
}

Address RemoteSpace::address_of(Buffer buffer, std::size_t place) const noexcept {
  return buffers_ + static_cast<std::size_t>(buffer) * block_bytes + place;
}

RemoteSpace::Reply RemoteSpace::ask(const Question& question) noexcept {
  Command& command = take();
  command.what = question.what;
  command.buffer = static_cast<std::uint32_t>(question.buffer);
  command.address = question.address;
  command.bytes = question.bytes;
  command.pages = question.pages;
  // In one order with the load of `ended_` in wait(), as end() has them the other way round: one of the two sees the
  // other. It also publishes the command.
  command.state.store(Command::asked, std::memory_order_seq_cst);
  ring_bell(channel_.agent_bell);
  wait(command);
  const Reply reply =
      has_ended() ? Reply{} : Reply{.done = command.done != 0, .pages = command.pages};  // who ended has not answered
  command.state.store(Command::idle, std::memory_order_release);
  return reply;
}

// There are more commands than threads of a keeper that ask at a time, but for moments.
Command& RemoteSpace::take() noexcept {
  for (;;) {
    for (Command& each : channel_.commands) {
      std::uint32_t expected = Command::idle;
      if (each.state.compare_exchange_strong(expected, Command::taken, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        return each;
      }
    }
    std::this_thread::yield();
  }
}

void RemoteSpace::wait(Command& command) noexcept {
  constexpr std::chrono::hours long_time{1};
  while (command.state.load(std::memory_order_acquire) == Command::asked) {
    if (ended_.load(std::memory_order_seq_cst)) return;
    futex_wait(command.state, Command::asked, long_time);
  }
}

void RemoteSpace::end() noexcept {
  ended_.store(true, std::memory_order_seq_cst);
  for (Command& each : channel_.commands) {
    std::uint32_t expected = Command::asked;
    each.state.compare_exchange_strong(expected, Command::answered, std::memory_order_seq_cst);
    futex_wake(each.state, 1);
  }
}

}  // namespace tonari::far
