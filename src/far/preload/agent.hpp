#pragma once

#include "far/channel.hpp"

namespace tonari::far {

inline constexpr std::size_t agents_max = 8;

/// What the agents work with. They keep their own copies of the descriptors.
struct AgentTools {
  Channel* channel = nullptr;
  std::byte* lent = nullptr;  // what servers lend, if it is here
  pager::Address buffers = 0;
  pager::Address nurseries = 0;  // a block for each, which may be a huge page
  int faults = -1;               // the arena's userfaultfd: pages are placed there
  int watch = -1;                // the buffers': pages leave the arena for them
  int socket = -1;               // held only, for the keeper to see it end
};

/// Starts the threads that do the keeper's commands, which only work from inside the address space. They are none that
/// libc knows of, have no signals and tables of descriptors of their own: the program can close nothing of them, and
/// they keep nothing of the program open. Answers once they have closed what is not theirs: 0, or an error number.
/// Once, and once more in a forked child.
int start_agents(const AgentTools& tools) noexcept;

}  // namespace tonari::far
