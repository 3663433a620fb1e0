#pragma once

#include "far/channel.hpp"

namespace tonari::far {

inline constexpr std::size_t agents_max = 8;

/// The agents' tools. Agents keep their own copies of the descriptors.
struct AgentTools {
  Channel* channel = nullptr;
  std::byte* lent = nullptr;  // the memory that servers lend, if it is on this host
  pager::Address buffers = 0;
  pager::Address nurseries = 0;  // a block for each agent, which may be a huge page
  int faults = -1;               // the arena's userfaultfd: to move pages into it
  int watch = -1;                // the buffers' userfaultfd: to move pages out of the arena
  int socket = -1;               // only held open, so that the keeper sees its end
};

/// Starts the threads that carry out the keeper's commands, which only work from inside the address space. libc does
/// not know these threads. They take no signals, except SIGBUS if the program's threads serve their own faults, and
/// have descriptor tables of their own: the program cannot close their descriptors, and they keep none of the program's
/// open. Returns 0 or an error number, once the threads have closed all other descriptors. Call it once, and once more
/// in a forked child.
int start_agents(const AgentTools& tools) noexcept;

/// Returns true if the calling thread is an agent.
bool is_agent() noexcept;
/// Returns the arena's userfaultfd in the agents' descriptor tables.
int faults_of_agents() noexcept;

/// Whether the supplementary groups have changed: only a process with privileges may set them, even to the same ones.
enum class Groups : std::uint8_t { same, changed };
/// Gives all agents the calling thread's user and group ids, and its supplementary groups if they have changed. Returns
/// true once all agents have them, false if an agent could not take them. Call it while no agents start, and by one
/// thread at a time.
bool change_agents_credentials(Groups groups) noexcept;

}  // namespace tonari::far
