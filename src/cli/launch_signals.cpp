#include "cli/launch_signals.hpp"

#include "base/error.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <sys/signalfd.h>

namespace tonari::cli {

namespace {

constexpr rlim_t descriptors_each =
    5;  // two pipes, the process; for the process that joined: the process and its connection
constexpr rlim_t descriptors_beside = 96;  // our own, and some for `tonari status`

// Returns the signals that are passed on to the ranks. A signal that is ignored already (nohup, a shell's background
// job) stays ignored.
sigset_t signals_to_take() noexcept {
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) ::sigaddset(&taken, number);
  }
  return taken;
}

}  // namespace

SignalInbox::SignalInbox() {
  const sigset_t taken = signals_to_take();
  descriptor_ = FileDescriptor{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!descriptor_) throw_system_error("signalfd");
  ::sigprocmask(SIG_BLOCK, &taken, &mask_before_);

  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;  // write() reports it when the reader has gone
  ::sigaction(SIGPIPE, &ignore, &pipe_before_);
}

SignalInbox::~SignalInbox() {
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

std::optional<SignalInbox::Signal> SignalInbox::next() noexcept {
  signalfd_siginfo info{};
  if (::read(descriptor_.number(), &info, sizeof info) != sizeof info) return std::nullopt;
  return Signal{.number = static_cast<int>(info.ssi_signo), .from_terminal = info.ssi_code == SI_KERNEL};
}

DescriptorLimit::DescriptorLimit(int ranks) {
  if (::getrlimit(RLIMIT_NOFILE, &before_) != 0) throw_system_error("getrlimit(RLIMIT_NOFILE)");
  const rlim_t needed = descriptors_each * static_cast<rlim_t>(ranks) + descriptors_beside;
  if (needed <= before_.rlim_cur) return;
  if (needed > before_.rlim_max) {
    throw SetupError(
        fmt::format("{} ranks need {} descriptors, and this process may have {}: use fewer ranks, or raise "
                    "the hard limit (ulimit -Hn, LimitNOFILE= of systemd)",
                    ranks, needed, before_.rlim_max));
  }
  const rlimit wider{.rlim_cur = needed, .rlim_max = before_.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &wider) != 0) throw_system_error("setrlimit(RLIMIT_NOFILE)");
}

}  // namespace tonari::cli
