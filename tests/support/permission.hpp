#pragma once

#include "require.hpp"

#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

namespace tonari::test {

/// Takes the permission to copy from and to this process's memory away from other processes, or loses its own
/// permission for theirs:
///
///   dumpable   PR_SET_DUMPABLE; not from root
///   user       this process, which belongs to root, becomes another user's
inline void take_permission(const std::string& how) {
  constexpr unsigned nobody = 65534;
  if (how == "dumpable") return require(::prctl(PR_SET_DUMPABLE, 0) == 0, "PR_SET_DUMPABLE failed");
  require(::setgroups(0, nullptr) == 0 && ::setresgid(nobody, nobody, nobody) == 0 &&
              ::setresuid(nobody, nobody, nobody) == 0,
          "changing the user failed");
}

}  // namespace tonari::test
