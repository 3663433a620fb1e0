// `tonari bench register`: its options, launches and tables. See measure.hpp.

#include "driver/one_sided.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::registration {

namespace {

class Register final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "register"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to let other ranks reach N bytes of the program's own memory, and to end that?";
  }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds, in microseconds. together: a window that both ranks make and free. alone: "
           "one\n"
           "rank does it by itself; of an MPI, memory attached to a dynamic window. pinned: its pages are kept in\n"
           "memory from the start, as far as `ulimit -l` allows.\n"
           "\n"
           "Examples:\n"
           "  tonari bench register --quick\n"
           "  tonari bench register --sizes 4K-1G --rival openmpi,mpich --json register.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    add_sizes(command, options, "Bytes of each rank, from 8", usual_sizes);
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override {
    if (options.launch.ranks != 2) throw SetupError("register needs two ranks, no more: -n 2");
    const auto all_sizes = sizes(options);
    if (std::ranges::min(all_sizes) < 8) throw SetupError("--sizes: register needs 8 bytes at least");
    std::vector<Launch> launches;
    add_launches(launches,
                 {"register",
                  options.launch,
                  {worker_option("sizes", all_sizes), fmt::format("--budget-us={}", budget_us(options))}},
                 systems, "");
    return launches;
  }
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)}, {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"make", Better::low}, {"free", Better::low}}; }

 private:
  static constexpr const char* usual_sizes = "4K,64K,1M,16M,256M";

  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(options.quick ? "4K,1M" : usual_sizes));
  }
};

const Registered<Register> registered(Topic::windows, 6);

}  // namespace

}  // namespace tonari::bench::driver::registration
