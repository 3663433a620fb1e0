// libexec/tonari/bench, which `tonari` executes with its own arguments for `tonari bench`, `tonari predict` and `tonari
// report`.

#include "cli/program.hpp"
#include "cli/standard_streams.hpp"
#include "driver/command.hpp"
#include "predict/command.hpp"
#include "predict/fit.hpp"
#include "report/command.hpp"
#include "report/papers.hpp"

#include <algorithm>

namespace {

void add_commands(CLI::App& app, int& exit_status) {
  tonari::bench::driver::add_bench(app, exit_status, tonari::bench::report::tell_papers_of);
  tonari::bench::predict::add_fit(*app.get_subcommand("bench"), exit_status);
  tonari::bench::predict::add_predict(app, exit_status);
  tonari::bench::report::add_report(app, exit_status);
}

}  // namespace

int main(int count, char** arguments) {
  tonari::cli::open_missing_descriptors();
  return tonari::cli::run_program({arguments + std::min(count, 1), arguments + count}, add_commands);
}
