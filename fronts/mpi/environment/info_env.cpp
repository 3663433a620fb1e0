#include "mpi/environment/info_env.hpp"

#include "mpi/environment/error_handlers.hpp"
#include "mpi/process.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <iterator>

namespace tonari::mpi {

std::vector<std::string> started_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::string> arguments;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find(begin, all.end(), '\0');
    arguments.emplace_back(begin, end);
    begin = end == all.end() ? end : end + 1;
  }
  return arguments;
}

const char* thread_level_name(int level) noexcept {
  switch (level) {
    case MPI_THREAD_SINGLE: return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED: return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED: return "MPI_THREAD_SERIALIZED";
    default: return "MPI_THREAD_MULTIPLE";
  }
}

void set_hint(Hints& hints, const std::string& key, const std::string& value) {
  const auto found = std::ranges::find(hints, key, &Hints::value_type::first);
  if (found != hints.end()) {
    found->second = value;
  } else {
    hints.emplace_back(key, value);
  }
}

Hints environment_hints(const std::vector<std::string>& arguments) {
  Hints hints;
  // A value that is too long for a program's array is cut off.
  const auto set = [&hints](const char* key, const std::string& value) {
    if (!value.empty()) set_hint(hints, key, value.substr(0, MPI_MAX_INFO_VAL - 1));
  };
  if (!arguments.empty()) set("command", arguments.front());
  std::string argv;
  for (std::size_t i = 1; i < arguments.size(); ++i) argv += (i > 1 ? " " : "") + arguments[i];
  set("argv", argv);
  Process* const process = Process::current();
  if (process != nullptr) {
    set("mpi_initial_errhandler", initial_error_handler_name());
    set("maxprocs", std::to_string(process->job().size()));
    set("soft", std::to_string(process->job().size()));
    set("host", process->job().host_name());
    set("thread_level", thread_level_name(process->thread_level()));
  }
  utsname system{};
  if (::uname(&system) == 0) set("arch", system.machine);
  char folder[PATH_MAX];
  if (::getcwd(folder, sizeof folder) != nullptr) set("wdir", folder);
  set("mpi_memory_alloc_kinds", memory_kinds);
  return hints;
}

}  // namespace tonari::mpi
