#include "cli/command.hpp"
#include "cli/program.hpp"
#include "cli/standard_streams.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace {

/// Whether the program for `tonari bench` has to run this: "bench ...", "help bench ...", "predict ...", "report ...".
bool is_for_bench(const std::vector<std::string>& words) {
  const std::size_t first = !words.empty() && words.front() == "help" ? 1 : 0;
  if (words.size() <= first) return false;
  const auto& command = words[first];
  return command == "bench" || command == "predict" || command == "report";
}

}  // namespace

int main(int count, char** arguments) {
  tonari::cli::open_missing_descriptors();
  const std::vector<std::string> words{arguments + std::min(count, 1), arguments + count};
  if (is_for_bench(words)) return tonari::cli::execute_bench_program(words);
  return tonari::cli::run_program(words, tonari::cli::list_bench);
}
