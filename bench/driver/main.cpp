// libexec/tonari/bench, which `tonari` executes with its own arguments for `tonari bench`.

#include "cli/program.hpp"
#include "cli/standard_streams.hpp"
#include "driver/command.hpp"

#include <algorithm>

int main(int count, char** arguments) {
  tonari::cli::open_missing_descriptors();
  return tonari::cli::run_program({arguments + std::min(count, 1), arguments + count},
                                  tonari::bench::driver::add_bench);
}
