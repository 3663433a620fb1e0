// `tonari bench window`: its options, launches and tables. See measure.hpp.

#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::window {

namespace {

constexpr std::size_t ucx_sizes[]{8, std::size_t{64} << 10, std::size_t{1} << 20};

bool among(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

class Window final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "window"; }
  [[nodiscard]] std::string_view asks() const override {
    return "how long does it take to write N bytes of another rank's memory, or to read them?";
  }
  [[nodiscard]] bool has_ucx() const override { return true; }
  [[nodiscard]] bool has_one_sided_mpi() const override { return true; }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::vector<UsualRun> usual_runs(bool quick) const override {
    // The sizes of figure 5 of the MLC-1 paper are added.
    if (quick) {
      return {{"", {"--rival", "auto"}},
              {"-steps", {"--sizes", "4K-12K+4K", "--operations", "push", "--owner", "waiting"}}};
    }
    return {{"", {"--rival", "auto"}}, {"-steps", {"--sizes", "4K-12K+256", "--owner", "waiting", "--rival", "auto"}}};
  }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints medians of all rounds. latency: of one operation and what completes it, in microseconds. rate: of "
           "16\n"
           "that are completed together, in GB/s. hidden: the share of posted descriptors' time that a computation of\n"
           "the poster hides. Beside the systems stand bare copies: memcpy between memory that "
           "two\n"
           "processes have mapped, and process-vm, the system call process_vm_writev or readv.\n"
           "\n"
           "Examples:\n"
           "  tonari bench window --quick\n"
           "  tonari bench window --sizes 4K-12K+256 --operations push --owner waiting\n"
           "  tonari bench window --rival openmpi,mpich,ucx --json window.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    const auto add = [&](const char* option, std::string& value, const char* meaning) {
      command.add_option(option, value, meaning)->type_name("LIST")->capture_default_str()->group("The question");
    };
    command
        .add_option("--sizes", options.sizes,
                    "Bytes per operation: a list with K, M, G for powers of 1024, ranges that double, and ranges in "
                    "steps such as 4K-12K+256 (default: 8,64,512,4K,32K,64K,256K,1M)")
        ->type_name("LIST")
        ->group("The question");
    add("--operations", operations_, "push: write. pull: read");
    add("--memory", memory_, "ours: memory that the system makes. own: memory that the program has");
    add("--owner", owner_,
        "The activity of the owner of the memory. waiting: is in a receive. computing: calls no library for a "
        "fixed time, for which an operation that needs its help has to wait");
    add("--buffers", buffers_, "warm: the same memory each time. cold: other memory, out of the caches' reach");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"sizes", sizes(options)},
            {"operations", operations_},
            {"memory", memory_},
            {"owner", owner_},
            {"buffers", buffers_},
            {"budget_us", budget_us(options)},
            {"computing_us", computing_us(options)},
            {"computations", computations(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override {
    return {{"latency", Better::low}, {"rate", Better::high}, {"hidden", Better::neither}};
  }

 private:
  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or(options.quick ? "8,4K,64K" : "8,64,512,4K,32K,64K,256K,1M"));
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 3000 : 10000; }
  [[nodiscard]] static double computing_us(const BenchOptions& options) { return options.quick ? 5000 : 20000; }
  [[nodiscard]] static int computations(const BenchOptions& options) { return options.quick ? 2 : 3; }

  std::string operations_ = "push,pull";
  std::string memory_ = "ours,own";
  std::string owner_ = "waiting,computing";
  std::string buffers_ = "warm,cold";
};

std::vector<Launch> Window::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("window needs two ranks, no more: -n 2");
  const auto all_sizes = sizes(options);
  const auto memory = parse_choices("--memory", memory_, {"ours", "own"});
  const auto buffers = parse_choices("--buffers", buffers_, {"warm", "cold"});
  Ask ask{"window", options.launch, {}};
  ask.arguments = {worker_option("sizes", all_sizes),
                   worker_option("operations", parse_choices("--operations", operations_, {"push", "pull"})),
                   worker_option("memory", memory),
                   worker_option("owner", parse_choices("--owner", owner_, {"waiting", "computing"})),
                   worker_option("buffers", buffers),
                   fmt::format("--budget-us={}", budget_us(options)),
                   fmt::format("--computing-us={}", computing_us(options)),
                   fmt::format("--computations={}", computations(options))};
  std::vector<Launch> launches;
  const auto add = [&](Launch launch) {
    if (!launch.systems.empty()) launches.push_back(std::move(launch));
  };
  add({ask, without(systems, Family::ucx), ""});
  add(without_rdma(ask, at_default(systems)));

  const auto ask_one = [&](Family family, std::string_view key, std::string_view value) {
    auto one = ask;
    one.arguments.push_back(fmt::format("--{}={}", key, value));  // the later option overrides the former
    add({std::move(one), {{family, false}}, ""});
  };
  if (systems.size() != without(systems, Family::ucx).size() && among(memory, "ours") && among(buffers, "warm")) {
    std::vector<std::size_t> few;
    std::ranges::copy_if(all_sizes, std::back_inserter(few),
                         [](auto bytes) { return std::ranges::find(ucx_sizes, bytes) != std::end(ucx_sizes); });
    if (!few.empty()) ask_one(Family::ucx, "sizes", fmt::format("{}", fmt::join(few, ",")));
  }
  if (among(memory, "ours")) ask_one(Family::bare_memcpy, "memory", "ours");
  if (among(memory, "own")) ask_one(Family::process_vm, "memory", "own");
  return launches;
}

const Registered<Window> registered(Topic::windows, 2);

}  // namespace

}  // namespace tonari::bench::driver::window
