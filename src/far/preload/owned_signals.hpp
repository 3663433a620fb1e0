#pragma once

#include <csignal>

namespace tonari::far {

// Signals whose handlers are ours: SIGBUS and SIGSYS, where the program's threads serve their own page faults. The
// program sees them as if their handlers were its own.

using SignalHandler = void (*)(int signal, siginfo_t* info, void* context);

/// The signals that the handler blocks while it runs.
enum class Blocks { nothing, all_signals };

/// Makes `handler` the handler of SIGBUS or SIGSYS, and keeps the program's action for act_as_program(). Returns 0 or
/// an error number. May be called again.
int own_signal(int signal, SignalHandler handler, int flags, Blocks blocks) noexcept;

bool is_owned(int signal) noexcept;

/// Sets and returns the program's action for an owned signal, in the way of sigaction().
int set_program_action(int signal, const struct sigaction* action, struct sigaction* before) noexcept;

/// Called by our handler: does what the program's action for the signal is.
void act_as_program(int signal, siginfo_t* info, void* context);

/// Calls libc's sigaction(). The program calls our wrapper of it.
int sigaction_of_libc(int signal, const struct sigaction* action, struct sigaction* before) noexcept;

}  // namespace tonari::far
