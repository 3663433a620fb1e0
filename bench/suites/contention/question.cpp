// `tonari bench contention`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

namespace tonari::bench::driver::contention {

namespace {

class Contention final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "contention"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how fast do ranks send when several share a link, or one receiver?";
  }
  [[nodiscard]] int default_ranks() const override { return 4; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool /*quick*/) const override {
    return {{"", {"--apart", "network", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints GB/s of all senders together, the median of all rounds, and how many TCP segments their hosts had "
           "to send again for each GB. pairs: rank i of the first half of the ranks sends to rank i of the second. "
           "incast: ranks 1 and up send to rank 0.\n"
           "\n"
           "Examples:\n"
           "  tonari bench contention --apart network --quick\n"
           "  tonari bench contention -n 8 --apart network --rival openmpi,mpich --json contention.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes per message", usual_sizes);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    if (options.launch.ranks < 2) throw SetupError("contention needs two ranks or more: -n 2");
    const Ask ask{"contention",
                  options.launch,
                  {worker_option("sizes", sizes(options)), fmt::format("--budget-us={}", budget_us(options))}};
    return {{ask, systems, ""}};
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"rate", Better::high}, {"retransmitted", Better::low}};
  }

 private:
  static constexpr const char* usual_sizes = "64K,1M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(usual_sizes));
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 30'000 : 300'000; }
};

const Registered<Contention> registered(Topic::collectives, 5);

}  // namespace

}  // namespace tonari::bench::driver::contention
