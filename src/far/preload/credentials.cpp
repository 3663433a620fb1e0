#include "far/preload/helpers.hpp"
#include "far/preload/program.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"

#include <grp.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

// When the program changes its user or its groups, its helpers do the same. For the kernel each thread has credentials
// of its own. libc changes the credentials of all threads that it knows, and it does not know the agents.
TONARI_NEXT(setuid)
TONARI_NEXT(setgid)
TONARI_NEXT(seteuid)
TONARI_NEXT(setegid)
TONARI_NEXT(setreuid)
TONARI_NEXT(setregid)
TONARI_NEXT(setresuid)
TONARI_NEXT(setresgid)
TONARI_NEXT(setgroups)
TONARI_NEXT(initgroups)

namespace {

using namespace tonari::far;
namespace next = tonari::preload::next;

// The process would go on with threads that have rights which it has given up. libc ends the process in this case, too.
[[noreturn]] void end_with_message() noexcept {
  constexpr std::string_view message =
      "tonari far: the program has changed its user or its groups, and threads of tonari in it could not do the same: "
      "start the program as the user that it should be\n";
  (void)system_call(SYS_write, STDERR_FILENO, message.data(), message.size());
  for (;;) (void)system_call(SYS_kill, system_call(SYS_getpid), SIGKILL);
}

// The helpers take the calling thread's credentials as they are then, whichever call has changed them. So it does no
// harm if a helper has started only after the change, and has the new ones. A child has none while it shares its
// parent's memory after a vfork.
int let_agents_follow(int answer, Groups groups = Groups::same) noexcept {
  const auto process = static_cast<int>(system_call(SYS_getpid));
  // Relaxed: if another thread is starting the helpers, libc has waited for that thread during the change.
  if (answer != 0 || program.process.load(std::memory_order_relaxed) != process) return answer;
  const Guard guard(program.beginning);
  if (has_helpers() && !change_helpers_credentials(groups)) end_with_message();
  return answer;
}

}  // namespace

TONARI_EXPORTED int setuid(uid_t user) noexcept { return let_agents_follow(next::setuid(user)); }
TONARI_EXPORTED int setgid(gid_t group) noexcept { return let_agents_follow(next::setgid(group)); }
TONARI_EXPORTED int seteuid(uid_t user) noexcept { return let_agents_follow(next::seteuid(user)); }
TONARI_EXPORTED int setegid(gid_t group) noexcept { return let_agents_follow(next::setegid(group)); }
TONARI_EXPORTED int setreuid(uid_t real, uid_t effective) noexcept {
  return let_agents_follow(next::setreuid(real, effective));
}
TONARI_EXPORTED int setregid(gid_t real, gid_t effective) noexcept {
  return let_agents_follow(next::setregid(real, effective));
}
TONARI_EXPORTED int setresuid(uid_t real, uid_t effective, uid_t saved) noexcept {
  return let_agents_follow(next::setresuid(real, effective, saved));
}
TONARI_EXPORTED int setresgid(gid_t real, gid_t effective, gid_t saved) noexcept {
  return let_agents_follow(next::setresgid(real, effective, saved));
}
TONARI_EXPORTED int setgroups(std::size_t count, const gid_t* groups) noexcept {
  return let_agents_follow(next::setgroups(count, groups), Groups::changed);
}
TONARI_EXPORTED int initgroups(const char* user, gid_t group) {
  return let_agents_follow(next::initgroups(user, group), Groups::changed);
}
