#pragma once

#include "far/channel.hpp"

namespace tonari::far {

/// What the agent works with. It keeps its own copies of the descriptors.
struct AgentTools {
  Channel* channel = nullptr;
  pager::Address buffers = 0;
  pager::Address nursery = 0;  // a block that may be a huge page
  int faults = -1;             // the arena's userfaultfd: pages are placed there
  int watch = -1;              // the buffers': pages leave the arena for them
  int socket = -1;             // held only, for the keeper to see it end
};

/// Starts the thread that does the keeper's commands, which only works from inside the address space. It is no thread
/// that libc knows of, has no signals and a table of descriptors of its own: the program can close nothing of it, and
/// it keeps nothing of the program open. Answers once it has closed what is not its own: 0, or an error number. Once.
int start_agent(const AgentTools& tools) noexcept;

}  // namespace tonari::far
