#pragma once

#include "far/channel.hpp"

namespace tonari::far {

inline constexpr std::size_t agents_max = Channel::agents_max;

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

/// Starts the helpers that carry out the keeper's commands, which only work from inside the address space. They take
/// SIGBUS if the program's threads serve their own faults. Returns 0 or an error number, once they have closed all
/// other descriptors. Call it once, and once more in a forked child.
int start_agents(const AgentTools& tools) noexcept;

/// Returns true if the calling thread is an agent.
bool is_agent() noexcept;
/// Returns the arena's userfaultfd in the agents' descriptor tables.
int faults_of_agents() noexcept;

}  // namespace tonari::far
