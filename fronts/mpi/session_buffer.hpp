#pragma once

#include <memory>

namespace tonari::mpi {

class AttachedBuffer;

/// The place of a session's buffer for buffered sends. The groups and communicators that are derived from the session
/// share the place. It is empty if the session has no buffer, or has ended. Threads: see buffered.cpp, whose lock
/// protects it.
struct SessionBuffer {
  std::shared_ptr<AttachedBuffer> attached;
};

}  // namespace tonari::mpi
