// `tonari bench behind`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

namespace tonari::bench::driver::behind {

namespace {

class Behind final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "behind"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does a short message take behind the traffic of other ranks?";
  }
  [[nodiscard]] int default_ranks() const override { return 4; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints half the round trip of 8 bytes between ranks 0 and 1, the median of all rounds, in microseconds: "
           "alone, and behind other traffic. Rank 2 sends messages of 16 MiB to rank 0 all the time, and rank 3 "
           "8-byte messages. stream and flood are the rates at which they arrived.\n"
           "\n"
           "Examples:\n"
           "  tonari bench behind --quick\n"
           "  tonari bench behind --rival openmpi,mpich --json behind.json";
  }

  void add_options(CLI::App&, BenchOptions&) override {}

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    if (options.launch.ranks != 4) throw SetupError("behind needs four ranks, no more: -n 4");
    return {{Ask{"behind", options.launch, {fmt::format("--budget-us={}", budget_us(options))}}, systems, ""}};
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low}, {"stream", Better::high}, {"flood", Better::high}};
  }

 private:
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 200'000 : 1'000'000; }
};

const Registered<Behind> registered(Topic::messages, 6);

}  // namespace

}  // namespace tonari::bench::driver::behind
