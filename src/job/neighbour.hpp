#pragma once

#include "base/file_descriptor.hpp"
#include "job/arena.hpp"

#include <sys/types.h>

namespace tonari::job {

/// The process of another rank of this host.
struct Neighbour {
  int rank = -1;
  pid_t pid = 0;
  FileDescriptor process{};  ///< Readable once the process has ended.
};

/// Allows all processes of this user to read this process's memory, where Yama would allow only its ancestors.
void admit_neighbours() noexcept;

/// Returns whether this process can read that rank's memory by process_vm_readv and write it by process_vm_writev.
/// Tries it on the rank's probe word, whose address is in the rank's block and whose value stays the same. It may
/// change later, when a process changes its user or forbids that others read it.
bool can_copy_from(const Arena& arena, int rank) noexcept;

/// The same for the memory of this process itself. It fails under qemu-user, or if a container filters system calls.
bool can_copy_here() noexcept;

}  // namespace tonari::job
