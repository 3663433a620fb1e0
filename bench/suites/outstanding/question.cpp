// `tonari bench outstanding`: its options, launches and tables. See measure.hpp.

#include "cli/options.hpp"
#include "driver/registry.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace tonari::bench::driver::outstanding {

namespace {

constexpr int outstanding_max = 1'000'000;
constexpr int limit_s_max = 3600;
constexpr std::size_t bytes_max = std::size_t{1} << 20;

class Outstanding final : public Question {
 public:
  [[nodiscard]] std::string_view name() const override { return "outstanding"; }
  [[nodiscard]] std::string_view asks() const override {
    return "what does a message cost, against how many are outstanding at once?";
  }
  [[nodiscard]] int default_ranks() const override { return 2; }
  [[nodiscard]] std::string_view examples() const override {
    return "Prints microseconds per message, the median of all rounds. In case `sends` one rank starts that many "
           "sends, each with its own tag, and waits for all; the other receives the last one first. In case "
           "`receives` the receives are started first, and the last message is sent first.\n"
           "\n"
           "Examples:\n"
           "  tonari bench outstanding --quick\n"
           "  tonari bench outstanding --cases sends --sizes 4K --apart network --rival openmpi-default\n"
           "  tonari bench outstanding --rival openmpi,mpich --json outstanding.json";
  }

  void add_options(CLI::App& command, BenchOptions& options) override {
    command
        .add_option("--outstanding", outstanding_,
                    "Messages outstanding at once, each from 1 to 1000000 (default: 10,100,1000,10000,100000,1000000; "
                    "with --quick up to 1000)")
        ->type_name("LIST")
        ->group("The question");
    add_sizes(command, options, "Bytes of a message, each up to 1 MiB", "8,4K");
    command
        .add_option("--cases", cases_,
                    "sends: started sends, received in reverse. receives: started receives, whose messages are sent "
                    "in reverse")
        ->type_name("LIST")
        ->capture_default_str()
        ->group("The question");
    command
        .add_option("--limit", limit_s_,
                    "A larger number is left out if all its messages would take more than so many seconds, from 1 to "
                    "3600")
        ->type_name("SECONDS")
        ->transform(cli::whole_number("a number of seconds", 1, limit_s_max))
        ->capture_default_str()
        ->group("The question");
  }

  [[nodiscard]] std::vector<Launch> plan(const BenchOptions& options,
                                         const std::vector<System>& systems) const override;
  [[nodiscard]] nlohmann::ordered_json parameters(const BenchOptions& options) const override {
    return {{"outstanding", numbers(options)},
            {"sizes", sizes(options)},
            {"cases", cases_},
            {"limit_s", limit_s_},
            {"budget_us", budget_us(options)}};
  }
  [[nodiscard]] std::vector<Metric> metrics() const override { return {{"time", Better::low}}; }
  [[nodiscard]] std::string tell(const Results& results) const override;

 private:
  [[nodiscard]] std::vector<int> numbers(const BenchOptions& options) const {
    const auto* const usual = options.quick ? "10,100,1000" : "10,100,1000,10000,100000,1000000";
    return parse_ascending("--outstanding", outstanding_.value_or(usual), 1, outstanding_max);
  }
  [[nodiscard]] static std::vector<std::size_t> sizes(const BenchOptions& options) {
    return parse_sizes("--sizes", options.sizes.value_or("8,4K"));
  }
  [[nodiscard]] static double budget_us(const BenchOptions& options) { return options.quick ? 5000 : 50'000; }

  std::optional<std::string> outstanding_;
  std::string cases_ = "sends,receives";
  int limit_s_ = 5;
};

std::vector<Launch> Outstanding::plan(const BenchOptions& options, const std::vector<System>& systems) const {
  if (options.launch.ranks != 2) throw SetupError("outstanding needs two ranks, no more: -n 2");
  const auto all_sizes = sizes(options);
  if (std::ranges::max(all_sizes) > bytes_max) {
    throw SetupError(
        fmt::format("--sizes: a message of {} bytes is too long; choose at most 1M", std::ranges::max(all_sizes)));
  }
  Ask ask{"outstanding", options.launch, {}};
  ask.arguments = {worker_option("outstanding", numbers(options)), worker_option("sizes", all_sizes),
                   worker_option("cases", parse_choices("--cases", cases_, {"sends", "receives"})),
                   fmt::format("--limit-s={}", limit_s_), fmt::format("--budget-us={}", budget_us(options))};
  return {{std::move(ask), systems, ""}};
}

std::string Outstanding::tell(const Results& results) const {
  auto text = Question::tell(results);
  std::string left_out;
  for (const auto& [system, values] : results.parameters().items()) {
    for (const auto& [name, value] : values.items()) {
      if (name.ends_with(" left out")) left_out += fmt::format("  {}: {} {}\n", system, name, value.get<std::string>());
    }
  }
  if (!left_out.empty()) text += fmt::format("\n(limit of an exchange: {} s)\n{}", limit_s_, left_out);
  return text;
}

const Registered<Outstanding> registered(Topic::messages, 4);

}  // namespace

}  // namespace tonari::bench::driver::outstanding
