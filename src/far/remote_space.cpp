#include "far/remote_space.hpp"

#include "base/futex.hpp"

#include <tonari/status.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace tonari::far {

using pager::Address;
using pager::block_bytes;
using pager::Buffer;
using pager::PageSet;

RemoteSpace::RemoteSpace(pager::Userfaultfd faults, std::span<std::byte> memory, std::span<std::byte> lent,
                         std::span<std::byte> tables)
    : Space(std::move(faults)),
      channel_(*std::launder(reinterpret_cast<Channel*>(memory.data()))),
      scratch_(memory.subspan(scratch_offset)),
      lent_(lent),
      tables_(tables),
      inbox_(channel_.passed, channel_.tally) {}

// The preload library has already prepared all memory that may become a region.
void RemoteSpace::prepare(Address /*start*/, std::size_t /*bytes*/) {}

void RemoteSpace::drop(Address start, std::size_t bytes) noexcept {
  (void)ask({.what = Command::What::drop, .address = start, .bytes = bytes});
}

PageSet RemoteSpace::take_out(Address block, const PageSet& pages, Buffer buffer, Sums sums,
                              pager::SharedPages shared) noexcept {
  const bool copies = shared == pager::SharedPages::copied && has_forked_.load(std::memory_order_relaxed);
  return ask({.what = Command::What::take_out, .buffer = buffer, .address = block, .copies = copies, .pages = pages},
             sums)
      .pages;
}

bool RemoteSpace::is_helper(std::uint32_t thread) const noexcept {
  return std::ranges::any_of(channel_.agent_threads, [thread](const std::atomic<std::uint32_t>& each) {
    return each.load(std::memory_order_relaxed) == thread;
  });
}

PageSet RemoteSpace::move_in(Address block, const PageSet& pages, Buffer buffer) noexcept {
  return ask({.what = Command::What::move_in, .buffer = buffer, .address = block, .pages = pages}).pages;
}

bool RemoteSpace::prefault(Buffer buffer) noexcept {
  return ask({.what = Command::What::prefault, .buffer = buffer}).done;
}

void RemoteSpace::empty(Buffer buffer) noexcept { (void)ask({.what = Command::What::empty, .buffer = buffer}); }

std::byte* RemoteSpace::view(Buffer /*buffer*/) noexcept { return nullptr; }

std::span<std::byte, block_bytes> RemoteSpace::scratch(std::size_t worker) noexcept {
  return scratch_.subspan(worker * block_bytes).first<block_bytes>();
}

bool RemoteSpace::fill(Buffer buffer, const std::byte* from, const PageSet& pages, Sums sums) noexcept {
  return ask({.what = Command::What::fill, .buffer = buffer, .shared = from, .pages = pages}, sums).done;
}

bool RemoteSpace::read(Buffer buffer, const PageSet& pages, std::size_t first, std::byte* to) noexcept {
  return ask({.what = Command::What::read, .buffer = buffer, .shared = to, .first = first, .pages = pages}).done;
}

PageSet RemoteSpace::protect(Address block, const PageSet& pages, Sums sums) noexcept {
  return ask({.what = Command::What::protect, .address = block, .pages = pages}, sums).pages;
}

bool RemoteSpace::read_in_place(Address block, const PageSet& pages, std::size_t first, std::byte* to) noexcept {
  return ask({.what = Command::What::read_in_place, .address = block, .shared = to, .first = first, .pages = pages})
      .done;
}

PageSet RemoteSpace::drop_protected(Address block, const PageSet& pages, const PageSet& going) noexcept {
  return ask({.what = Command::What::drop_protected, .address = block, .pages = pages, .going = going}).pages;
}

std::span<const pager::Fault> RemoteSpace::read_faults() noexcept {
  return threads_serve() ? inbox_.read() : Space::read_faults();
}

bool RemoteSpace::wait_for_faults() noexcept { return threads_serve() ? inbox_.wait() : Space::wait_for_faults(); }

void RemoteSpace::stop_waiting() noexcept { threads_serve() ? inbox_.stop() : Space::stop_waiting(); }

void RemoteSpace::wake_waiting(Address start, const std::atomic<std::uint32_t>& word) noexcept {
  constexpr int all = 0x7fffffff;
  threads_serve() ? futex_wake(word, all) : Space::wake_waiting(start, word);
}

std::span<std::byte> RemoteSpace::tables(Address start, std::size_t bytes, std::size_t table_bytes) {
  if (!threads_serve()) return {};
  const std::size_t whole = (table_bytes + pager::page_bytes - 1) / pager::page_bytes * pager::page_bytes;
  const std::uint32_t index = channel_.regions_count.load(std::memory_order_relaxed);
  if (whole > tables_.size() - tables_used_ || index == channel_.regions.size()) {
    throw SetupError("the keeper has no room left for the tables of another range of far memory: raise --min-size");
  }
  channel_.regions[index] = {.start = start, .bytes = bytes, .tables = tables_used_};
  channel_.regions_count.store(index + 1, std::memory_order_release);
  return tables_.subspan(std::exchange(tables_used_, tables_used_ + whole), table_bytes);
}

pager::Tally& RemoteSpace::tally() noexcept { return threads_serve() ? channel_.tally : Space::tally(); }

// The number is 0 for no bytes, otherwise their place in the lent memory, and 1.
std::uint64_t RemoteSpace::reference_to(std::span<const std::byte> bytes) noexcept {
  if (bytes.empty() || lent_.empty() || bytes.data() < lent_.data() || bytes.data() >= lent_.data() + lent_.size()) {
    return 0;
  }
  return static_cast<std::uint64_t>(bytes.data() - lent_.data()) + 1;
}

RemoteSpace::Reply RemoteSpace::ask(const Question& question, std::optional<Sums> sums) noexcept {
  Command& command = take();
  put(question, command);
  // (1) seq_cst orders this store before the load of `ended_` in wait() (2); end() stores and loads in the opposite
  // order (3). So at least one of the two threads sees the other's store. The store also publishes the command to the
  // agent.
  command.state.store(Command::asked, std::memory_order_seq_cst);
  // Release: an agent that sees the new count also sees the command. Pairs with the acquire in the agent's serve().
  channel_.agent_doorbell.fetch_add(1, std::memory_order_release);
  futex_wake(channel_.agent_doorbell, 1);  // any agent will do
  wait(command);
  Reply reply;  // an address space that has ended did not reply
  if (!has_ended()) {
    reply = {.done = command.done != 0, .pages = command.pages};
    if (sums) std::ranges::copy(command.sums, sums->begin());
  }
  command.state.store(Command::idle, std::memory_order_release);  // (4) the reply was read: pairs with take()
  return reply;
}

void RemoteSpace::put(const Question& question, Command& command) const noexcept {
  command.what = question.what;
  command.buffer = static_cast<std::uint32_t>(question.buffer);
  command.done = 0;
  command.address = question.address;
  command.bytes = question.bytes;
  command.copies = question.copies ? 1 : 0;
  command.first = static_cast<std::uint32_t>(question.first);
  command.pages = question.pages;
  command.going = question.going;
  if (question.shared == nullptr) return;
  const auto lent = static_cast<std::size_t>(question.shared - lent_.data());
  const bool is_lent = !lent_.empty() && question.shared >= lent_.data() && lent < lent_.size();
  command.shared = is_lent ? Shared::lent : Shared::scratch;
  command.place = is_lent ? lent : static_cast<std::size_t>(question.shared - scratch_.data());
}

// There are more commands than threads of a keeper that use them at a time, except for moments.
Command& RemoteSpace::take() noexcept {
  for (;;) {
    for (Command& each : channel_.commands) {
      std::uint32_t expected = Command::idle;
      // Acquire: pairs with (4), so that the new command does not overwrite a reply that is still being read.
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
  for (;;) {
    // Acquire: pairs with the release of `answered` by the agent, which publishes the reply.
    const std::uint32_t seen = command.state.load(std::memory_order_acquire);
    // (2) seq_cst: see (1).
    if (seen == Command::answered || ended_.load(std::memory_order_seq_cst)) return;
    futex_wait(command.state, seen, long_time);
  }
}

void RemoteSpace::end() noexcept {
  ended_.store(true, std::memory_order_seq_cst);  // (3) seq_cst, like the exchanges below: see (1)
  for (Command& each : channel_.commands) {
    for (std::uint32_t unanswered : {Command::asked, Command::at_work}) {
      each.state.compare_exchange_strong(unanswered, Command::answered, std::memory_order_seq_cst);
    }
    futex_wake(each.state, 1);
  }
}

}  // namespace tonari::far
