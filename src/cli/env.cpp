// `tonari env` prints the variables with which build systems and shells find tonari's MPI.

#include "cli/command.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <filesystem>

namespace tonari::cli {

namespace {

constexpr auto env_footer =
    "mpicc, mpicxx and mpiexec are in a directory of their own, so that they hide no other MPI's. This command prints "
    "lines for a shell that put the directory in front of PATH, and name it for CMake's FindMPI (MPI_HOME).\n"
    "\n"
    "Examples:\n"
    "  eval \"$(tonari env)\"          then: mpicc ring.c -o ring && mpiexec -n 4 ./ring\n"
    "  tonari env --directory        prints only the directory";

std::filesystem::path directory() {
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  auto commands = prefix / "libexec" / "tonari" / "bin";
  if (!std::filesystem::exists(commands / "mpicc")) {
    throw SetupError(fmt::format(
        "mpicc is not in {}: tonari was built without its MPI; build it with -DTONARI_FRONTS=ON", commands.string()));
  }
  return commands;
}

// For a shell: in single quotes, which keep everything but a single quote.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char each : text) result += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return result + "'";
}

}  // namespace

void add_env(CLI::App& app, int&) {
  CLI::App& env = *app.add_subcommand("env", "Print the shell variables with which mpicc and mpiexec are found.")
                       ->group("Commands");
  const auto only_directory = std::make_shared<bool>(false);
  env.add_flag("--directory", *only_directory, "Print only the directory of mpicc and mpiexec")
      ->disable_flag_override();
  env.footer(env_footer);
  env.callback([only_directory] {
    const std::string commands = directory().string();
    if (*only_directory) return fmt::print("{}\n", commands);
    fmt::print("export PATH={}:\"$PATH\"\nexport MPI_HOME={}\n", quoted(commands),
               quoted(directory().parent_path().string()));
  });
}

}  // namespace tonari::cli
