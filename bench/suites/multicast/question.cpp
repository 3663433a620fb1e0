// `tonari bench multicast`: its options, launches and tables. See measure.hpp.

#include "driver/one_sided.hpp"
#include "driver/registry.hpp"
#include "job/arena.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::multicast {

namespace {

class Multicast final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "multicast"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to write the same N bytes into the memory of all other ranks?";
  }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 0; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds, until the bytes are there. multicast: in one call.\n"
           "loop of pushes: in one for each rank. MPI has no such call, and does the loop for both.\n"
           "\n"
           "Examples:\n"
           "  tonari bench multicast --quick\n"
           "  tonari bench multicast --ranks 2,4,8 --sizes 8-64K --rival openmpi --json multicast.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command.add_option("-n,--ranks", ranks_, "Numbers of ranks, one after the other, each from 2")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("Ranks");
    add_sizes(command, options, "Bytes per multicast", usual_sizes);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    const Ask ask{"multicast",
                  options.launch,
                  {worker_option("sizes", sizes(options)), fmt::format("--budget-us={}", budget_us(options))}};
    std::vector<Launch> launches;
    for (const int ranks : ranks()) {
      auto one = ask;
      one.launch.ranks = ranks;
      add_launches(launches, one, systems, fmt::format("ranks {}", ranks));
    }
    return launches;
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"ranks", ranks()}, {"sizes", sizes(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"latency", Better::low}}; }

 private:
  static constexpr const char* usual_sizes = "8,64,512,4K,16K,64K,256K,1M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(options.quick ? "8,4K,64K" : usual_sizes));
  }
  [[nodiscard]] std::vector<int> ranks() const {
    return parse_ascending("--ranks", ranks_, 2, job::ranks_per_host_max);
  }

  std::string ranks_ = "4";
};

const Registered<Multicast> registered(Topic::windows, 5);

}  // namespace

}  // namespace tonari::bench::driver::multicast
