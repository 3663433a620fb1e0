#pragma once

#include "far/channel.hpp"
#include "preload/address.hpp"

#include <csignal>
#include <cstddef>

namespace tonari::far {

/// Tells that the program's threads may serve their own page faults later: from now on no thread and no handler blocks
/// SIGBUS or SIGSYS. Call it while the program has one thread, or call serve_own_faults(), which does it, too.
void expect_faults() noexcept;

/// Lets the program's threads serve their own page faults from now on, in the handler of SIGBUS, as far as they can;
/// the rest they pass on to the keeper. `lent` is the memory that servers lend, `tables` the pager's tables, and
/// `faults` the userfaultfd, which stays open in this process. Returns 0 or an error number. Call it once, before the
/// first fault.
int serve_own_faults(Channel& channel, const std::byte* lent, std::byte* tables, int faults) noexcept;

/// Returns true if the program's threads serve their own faults.
bool serves_own_faults() noexcept;

/// The result of bring().
enum class Bringing { here, lost, not_far };

/// Brings the page of `at`, without touching it, if the process's threads serve the faults there. It may leave again at
/// any time. Any thread but an agent, also in a handler.
Bringing bring(preload::Address at) noexcept;

}  // namespace tonari::far
