// A program with far memory that changes its user and groups. All of its threads must follow, and no child's change may
// reach them. Prints "ok" if that is so. An ordinary user can only change to itself.

#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr uid_t nobody = 65534;

// Returns the lines about credentials of the running threads' status, if they are the same for all threads.
std::string credentials() {
  std::string common;
  std::size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    std::string found;
    for (std::string line; std::getline(status, line);) {
      for (const std::string_view name : {"Uid:", "Gid:", "Groups:"}) {
        if (line.starts_with(name)) found += line + "\n";
      }
    }
    if (found.empty()) continue;  // the thread has ended: the kernel still lists it for a moment after it was joined
    if (threads++ == 0) common = found;
    if (found != common) return "different: " + common + found;
  }
  constexpr std::size_t threads_min = 5;  // this one and four agents
  return threads < threads_min ? "no agents" : common;
}

int failed(const char* what) {
  std::printf("%s: %s", what, credentials().c_str());
  return 1;
}

bool all_have(const std::string& users, const std::string& groups, const std::string& others) {
  return credentials() == "Uid:\t" + users + "\nGid:\t" + groups + "\nGroups:\t" + others + "\n";
}

int as_root() {
  if (setgroups(0, nullptr) != 0 || !all_have("0\t0\t0\t0", "0\t0\t0\t0", " ")) return failed("setgroups of none");
  if (seteuid(nobody) != 0 || !all_have("0\t65534\t0\t65534", "0\t0\t0\t0", " ")) return failed("seteuid");
  if (seteuid(0) != 0 || !all_have("0\t0\t0\t0", "0\t0\t0\t0", " ")) return failed("seteuid back");
  if (setegid(7) != 0 || !all_have("0\t0\t0\t0", "0\t7\t0\t7", " ")) return failed("setegid");
  if (setregid(8, 0) != 0 || !all_have("0\t0\t0\t0", "8\t0\t0\t0", " ")) return failed("setregid");
  if (initgroups("root", 5) != 0 || credentials().find("Groups:\t0 5") == std::string::npos) {
    if (credentials().find("Groups:\t5") == std::string::npos) return failed("initgroups");
  }
  const std::string before = credentials();
  const pid_t child = vfork();
  if (child == 0) _exit(setuid(nobody) != 0 ? 1 : 0);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0 || credentials() != before)
    return failed("setuid after vfork");
  const pid_t other = fork();
  if (other == 0) _exit(setgid(nobody) != 0 || setuid(nobody) != 0 ? 1 : 0);
  if (waitpid(other, &status, 0) != other || status != 0 || credentials() != before) return failed("setuid after fork");

  const gid_t groups[] = {9, 11};
  if (setgroups(2, groups) != 0 || setgid(12) != 0 || setresgid(13, 12, 14) != 0) return failed("groups");
  std::thread([] { (void)setresuid(nobody, nobody, 0); }).join();
  if (!all_have("65534\t65534\t0\t65534", "13\t12\t14\t12", "9 11 ")) return failed("setresuid of another thread");
  if (setreuid(0, nobody) == 0 && setuid(0) != 0) return failed("setreuid");
  if (setresuid(nobody, nobody, nobody) != 0) return failed("setresuid");
  if (!all_have("65534\t65534\t65534\t65534", "13\t12\t14\t12", "9 11 ")) return failed("setresuid");
  return setuid(0) == 0 ? failed("setuid back") : 0;
}

int as_ordinary_user() {
  const std::string before = credentials();
  if (setuid(getuid()) != 0 || setgid(getgid()) != 0 || credentials() != before) return failed("setuid to oneself");
  return setuid(0) == 0 || credentials() != before ? failed("setuid to root") : 0;
}

}  // namespace

int main() {
  std::vector<std::uint64_t> numbers(8 << 20);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  if (const int error = getuid() == 0 ? as_root() : as_ordinary_user()) return error;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != i) return failed("reading");
  }
  std::puts("ok");
  return 0;
}
