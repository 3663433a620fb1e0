#pragma once

#include "base/file_descriptor.hpp"
#include "job/arena.hpp"

#include <sys/types.h>

namespace tonari::job {

/// Another rank of this host: its process.
struct Neighbour {
  int rank = -1;
  pid_t pid = 0;
  FileDescriptor process{};  ///< Readable once it has ended.
};

/// Lets the processes of this user read this one's memory where Yama would restrict that to its ancestors.
void admit_neighbours() noexcept;

/// Whether this process can read that rank's memory by process_vm_readv: tries it on the rank's probe word, which its
/// block tells of.
bool can_copy_from(const Arena& arena, int rank) noexcept;

/// The same of this process itself: under qemu-user, or where a container filters system calls, it cannot.
bool can_copy_here() noexcept;

}  // namespace tonari::job
