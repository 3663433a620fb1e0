#include "far/preload/agent.hpp"

#include "far/preload/helpers.hpp"
#include "far/preload/program.hpp"
#include "pager/copying.hpp"
#include "pager/placing.hpp"
#include "preload/lock.hpp"

#include <limits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdint>

namespace tonari::far {

namespace {

using pager::Address;
using pager::block_bytes;
using pager::page_bytes;
using pager::Progress;

struct Calls {
  ControlCalls watch;
  ControlCalls faults;

  [[nodiscard]] Progress move_out(Address to, Address from, std::size_t bytes) const noexcept {
    return pager::kernel::move(watch, to, from, bytes);
  }
  [[nodiscard]] Progress move_in(Address to, Address from, std::size_t bytes) const noexcept {
    return pager::kernel::move(faults, to, from, bytes);
  }
  void wake(Address start, std::size_t bytes) const noexcept { pager::kernel::wake(faults, start, bytes); }
  void zero(Address to, std::size_t bytes) const noexcept { (void)pager::kernel::zero(watch, to, bytes); }
  static bool drop(Address start, std::size_t bytes) noexcept {
    return system_call(SYS_madvise, start, bytes, MADV_DONTNEED) == 0;  // fails if something else is mapped there
  }
  [[nodiscard]] pager::Answer protect(Address start, std::size_t bytes, bool writes_wait) const noexcept {
    return pager::kernel::protect(faults, start, bytes, writes_wait);
  }
  static bool populate(Address start, std::size_t bytes) noexcept {
    return system_call(SYS_madvise, start, bytes, MADV_POPULATE_WRITE) == 0;
  }
  // Where the pages are shared, writing to them copies them.
  static bool copy_shared(Address start, std::size_t bytes) noexcept { return populate(start, bytes); }
  static bool look_up(Address start, std::size_t bytes, unsigned char* pages) noexcept {
    return system_call(SYS_mincore, start, bytes, pages) == 0;
  }
};

constexpr std::size_t stack_bytes = 32 << 10;

struct Agents {
  AgentTools tools;
  std::atomic<std::uint32_t> settled{0};  // number of agents that run; it numbers the next one
};
constinit Agents agents{};
alignas(16) constinit std::array<std::array<std::byte, stack_bytes>, agents_max> stacks{};

std::byte* shared_place(const Command& command) noexcept {
  std::byte* const start = command.shared == Shared::lent
                               ? agents.tools.lent
                               : reinterpret_cast<std::byte*>(agents.tools.channel) + scratch_offset;
  return start + command.place;
}

void carry_out(pager::Placing<Calls>& placing, Command& command) noexcept {
  const Address buffer = agents.tools.buffers + command.buffer * block_bytes;
  auto* const bytes = static_cast<std::byte*>(pointer_to(buffer));
  switch (command.what) {
    case Command::What::take_out:
      command.pages = placing.take_out(command.address, command.pages, buffer,
                                       command.copies != 0 ? pager::SharedPages::copied : pager::SharedPages::stay);
      pager::sum_pages(bytes, command.pages, command.sums);
      break;
    case Command::What::move_in: command.pages = placing.move_in(command.address, command.pages, buffer); break;
    case Command::What::prefault: command.done = placing.prefault(buffer) ? 1 : 0; break;
    case Command::What::empty: placing.empty(buffer); break;
    case Command::What::drop: (void)Calls::drop(command.address, command.bytes); break;
    case Command::What::fill:
      pager::fill_pages(bytes, shared_place(command), command.pages, command.sums);
      command.done = 1;
      break;
    case Command::What::read:
      pager::copy_pages(shared_place(command), command.first, bytes, command.pages);
      command.done = 1;
      break;
    case Command::What::protect:
      command.pages = placing.protect(command.address, command.pages);
      pager::sum_pages(static_cast<std::byte*>(pointer_to(command.address)), command.pages, command.sums);
      break;
    case Command::What::read_in_place:
      pager::copy_pages(shared_place(command), command.first, static_cast<std::byte*>(pointer_to(command.address)),
                        command.pages);
      command.done = 1;
      break;
    case Command::What::drop_protected:
      command.pages = placing.drop_protected(command.address, command.pages, command.going);
      break;
  }
}

bool carry_out_all(pager::Placing<Calls>& placing) noexcept {
  bool met = false;
  for (Command& command : agents.tools.channel->commands) {
    std::uint32_t expected = Command::asked;
    // Acquire: sees the whole command. Only one agent gets it.
    if (!command.state.compare_exchange_strong(expected, Command::at_work, std::memory_order_acquire)) continue;
    carry_out(placing, command);
    command.state.store(Command::answered, std::memory_order_release);
    wake(command.state, INT_MAX, With::keeper);
    met = true;
  }
  return met;
}

[[noreturn]] void serve() noexcept {
  (void)system_call(SYS_prctl, PR_SET_NAME, "tonari-agent", 0, 0, 0);
  if (agents.tools.channel->table_bytes != 0) {  // the program's threads serve their own faults: see act_in_agent()
    const std::uint64_t faults = 1ULL << (SIGBUS - 1);
    (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &faults, nullptr, sizeof faults);
  }
  std::array<int, 3> kept{agents.tools.faults, agents.tools.watch, agents.tools.socket};
  close_all_but(kept);
  std::atomic<std::uint32_t>& doorbell = agents.tools.channel->agent_doorbell;
  Follower credentials(doorbell);
  const std::uint32_t number = agents.settled.load(std::memory_order_relaxed);
  agents.tools.channel->agent_threads[number].store(static_cast<std::uint32_t>(system_call(SYS_gettid)),
                                                    std::memory_order_relaxed);
  const Address nursery = agents.tools.nurseries + number * block_bytes;
  agents.settled.fetch_add(1, std::memory_order_release);  // release: pairs with start_agents()
  wake(agents.settled, 1, With::threads);

  pager::Placing<Calls> placing({{agents.tools.watch}, {agents.tools.faults}}, nursery);
  const bool is_first = number == 0;
  constexpr timespec patience{.tv_sec = patience_s, .tv_nsec = 0};
  const Channel& channel = *agents.tools.channel;
  for (;;) {
    // read before looking for commands, so that no command is missed
    const std::uint32_t seen = doorbell.load(std::memory_order_acquire);
    credentials.follow();
    if (carry_out_all(placing)) continue;
    const bool waited_out = wait_on(doorbell, seen, With::keeper, is_first ? &patience : nullptr);
    // Relaxed: the doorbell published it.
    if (channel.ended.load(std::memory_order_relaxed) != 0 || (waited_out && has_closed(agents.tools.socket)))
      end_program();
  }
}

}  // namespace

bool is_agent() noexcept {
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here >= stacks.front().data() && here < stacks.back().data() + stack_bytes;
}

int faults_of_agents() noexcept { return agents.tools.faults; }

int start_agents(const AgentTools& tools) noexcept {
  agents.tools = tools;
  agents.settled.store(0, std::memory_order_relaxed);  // a forked child inherits its parent's count
  constexpr std::array<std::byte, page_bytes> zeros{};
  (void)pager::checksum_of(zeros.data());  // detects the processor's features now, while there is only one thread
  const WithoutSignals inherited;
  for (std::uint32_t settled = 0; settled < std::min<std::uint32_t>(tools.channel->agents, agents_max); ++settled) {
    const long thread = clone_helper(serve, stacks[settled].data() + stack_bytes);
    if (is_error(thread)) return error_of(thread);
    while (agents.settled.load(std::memory_order_acquire) == settled) wait_on(agents.settled, settled, With::threads);
  }
  return 0;
}

}  // namespace tonari::far
