// `tonari bench`, `tonari predict` and `tonari report` are another program, libexec/tonari/bench (sources:
// bench/driver, bench/predict, bench/report). This process becomes that program, so exit status and signals need no
// forwarding.

#include "cli/command.hpp"
#include "cli/standard_streams.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace tonari::cli {

void list_bench(CLI::App& app, int&) {
  app.add_subcommand("bench", "Measure tonari, and its rivals in the same run.")->group("Commands");
  app.add_subcommand("predict", "Predict collectives of any number of ranks by simulation.")->group("Commands");
  app.add_subcommand("report", "Make a page with charts of the results of tonari bench.")->group("Commands");
}

int execute_bench_program(const std::vector<std::string>& arguments) {
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  const auto program = (prefix / "libexec" / "tonari" / "bench").string();
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  const int error = errno;
  print_stderr("tonari bench: cannot execute {}: {}; build it with -DTONARI_BENCH=ON, or run `make`\n", program,
               std::generic_category().message(error));
  return 2;
}

}  // namespace tonari::cli
