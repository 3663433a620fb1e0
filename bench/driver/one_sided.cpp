#include "driver/one_sided.hpp"

#include <fmt/format.h>

#include <utility>

namespace tonari::bench::driver {

void add_list(CLI::App& command, const char* option, std::string& value, const char* meaning) {
  command.add_option(option, value, meaning)->type_name("LIST")->capture_default_str()->group("The question");
}

double budget_us(const BenchOptions& options) { return options.quick ? 3000 : 10000; }
double computing_us(const BenchOptions& options) { return options.quick ? 5000 : 20000; }
int computations(const BenchOptions& options) { return options.quick ? 2 : 3; }

std::vector<std::string> effort(const BenchOptions& options) {
  return {fmt::format("--budget-us={}", budget_us(options)), fmt::format("--computing-us={}", computing_us(options)),
          fmt::format("--computations={}", computations(options))};
}

void add_launches(std::vector<Launch>& launches, const Ask& ask, const std::vector<System>& systems,
                  const std::string& note) {
  launches.push_back({ask, systems, note});
  if (auto second = without_rdma(ask, at_default(systems)); !second.systems.empty()) {
    second.note = note;
    launches.push_back(std::move(second));
  }
}

}  // namespace tonari::bench::driver
