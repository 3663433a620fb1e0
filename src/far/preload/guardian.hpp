#pragma once

namespace tonari::far {

/// Starts the guardian of a forked child: a helper that holds `line`, the child's connection to the keeper, and
/// `faults`, its userfaultfd, open, so that the program cannot close them. If the keeper ends, the guardian ends the
/// child: its absent pages would read as zeros otherwise. Returns 0 or an error number. The caller closes its own
/// descriptors. Call it once in a child.
int start_guardian(int line, int faults) noexcept;

}  // namespace tonari::far
