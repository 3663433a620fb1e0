// `tonari bench fit`: measures the parameters of predictions.

#include "predict/fit.hpp"

#include "base/clock.hpp"
#include "base/settings.hpp"
#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "cli/table.hpp"
#include "driver/child.hpp"
#include "driver/machine.hpp"
#include "driver/question.hpp"
#include "driver/report.hpp"
#include "fabric/bulk.hpp"
#include "predict/check.hpp"
#include "predict/fitting.hpp"
#include "predict/parameters.hpp"
#include "predict/workers.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

namespace tonari::bench::predict {

namespace {

using Json = nlohmann::ordered_json;

struct FitOptions {
  std::string output = "/dev/stdout";
  std::string network = "any";
  bool quick = false;
};

constexpr const char* remedy = "give -o a path that can be written";
constexpr const char* in_host = " in a host";
constexpr const char* between_hosts = " between hosts";
constexpr const char* sharing_cores = " between hosts, sharing cores";

// Costs change where messages begin to be announced, so there is a size just above: 12 KiB in a host, 16 KiB between.
std::vector<std::size_t> sizes_of(bool quick) {
  if (quick) return {8, 4096, 16384, 20480, 65536, 1048576};
  return {8, 64, 512, 2048, 8192, 12288, 16384, 17408, 32768, 65536, 262144, 1048576, 4194304};
}

// One rank computes.
void add_applications(const FitOptions& options, std::vector<Asked>& asks) {
  cli::LaunchOptions launch;
  launch.ranks = 1;
  const auto order = options.quick ? 200 : 2000;
  asks.push_back(
      {{"lu", launch, {fmt::format("--sizes={}", order), "--block=32", "--modes=started", "--budget-s=0.5"}}, in_host});
  asks.push_back({{"himeno", launch, {options.quick ? "--size=XS" : "--size=M", "--budget-us=300000"}}, in_host});
}

void add_asks(const FitOptions& options, bool apart, std::vector<Asked>& asks) {
  cli::LaunchOptions launch;
  launch.ranks = 2;
  launch.apart = apart ? "network" : "";
  if (apart) launch.network = options.network;
  const auto sizes = driver::worker_option("sizes", sizes_of(options.quick));
  const auto budget = fmt::format("--budget-us={}", options.quick ? 5'000 : 30'000);
  const char* const note = apart ? between_hosts : in_host;
  asks.push_back({{"pingpong", launch, {sizes, "--buffers=warm", "--receivers=posted", budget}}, note});
  asks.push_back({{"occupancy", launch, {sizes, budget}}, note});
  if (!apart) return add_applications(options, asks);
  launch.ranks = ranks_sharing_cores();
  if (launch.ranks != 0) asks.push_back({{"barrier", launch, {budget}}, sharing_cores});
}

std::vector<Measured> measured_of(const driver::Results& results, const std::string& note) {
  const auto& latency = series_of(results, note, "warm posted", "latency");
  const auto& send = series_of(results, note, "occupancy", "send");
  const auto& few = series_of(results, note, "occupancy", "few");
  const auto& exchange = series_of(results, note, "occupancy", "exchange");
  std::vector<Measured> all;
  for (const auto& [bytes, rounds] : latency.points) {
    Measured one{.bytes = static_cast<std::size_t>(bytes),
                 .half_round_trip_us = median_at(latency, bytes),
                 .send_us = median_at(send, bytes),
                 .gap_us = std::max(0.0, median_at(few, bytes)),
                 .exchange_us = median_at(exchange, bytes)};
    if (const auto interval = driver::bootstrap_median(latency.medians(bytes))) {
      one.interval = {interval->low, interval->high};
    }
    all.push_back(one);
  }
  return all;
}

// Returns the shortest of several times per byte, which no interruption has lengthened.
template <class Work>
double us_per_byte(std::size_t bytes, Work work) {
  double best_ns = 1e18;
  for (int i = 0; i < 50; ++i) {
    const auto start = monotonic_ns();
    work();
    best_ns = std::min(best_ns, static_cast<double>(monotonic_ns() - start));
  }
  return best_ns / 1000 / static_cast<double>(bytes);
}

// Copies and sums in the caches, as a collective does with data that have just arrived.
Json local_costs() {
  constexpr std::size_t count = std::size_t{1} << 15;
  std::vector<double> into(count, 0.0);
  const std::vector<double> from(count, 1.0);
  const std::size_t bytes = count * sizeof(double);
  const auto used = [&] { asm volatile("" : : "r"(into.data()) : "memory"); };
  const double copy = us_per_byte(bytes, [&] {
    std::memcpy(into.data(), from.data(), bytes);
    used();
  });
  const double fold = us_per_byte(bytes, [&] {
    for (std::size_t i = 0; i < count; ++i) into[i] += from[i];
    used();
  });
  return {{"copy_us_per_byte", copy}, {"fold_us_per_byte", fold}};
}

double only_median(const driver::Series& series) { return median_at(series, series.points.begin()->first); }

void print_table(const char* title, const Json& costs) {
  std::vector<std::vector<std::string>> rows{
      {fmt::format("{}, us", title), "half trip", "send", "latency", "receive", "push", "gap", "exchange"}};
  for (const auto& one : costs.at("sizes")) {
    const auto number = [&](const char* name) { return driver::format_number(one.at(name).get<double>()); };
    rows.push_back({driver::format_bytes(one.at("bytes").get<double>()), number("half_round_trip_us"),
                    number("send_us"), number("latency_us"), number("receive_us"), number("push_us"), number("gap_us"),
                    number("exchange_us")});
  }
  fmt::print("{}\nsizes between these: median error of half a round trip {:.1f} %\n\n", cli::format_table(rows),
             100 * costs.at("residual_error").get<double>());
}

int fit(const FitOptions& options) {
  driver::check_writable(options.output);
  auto unfit = driver::unfit_before();
  for (const auto& reason : unfit) cli::print_stderr("tonari bench fit: warning: {}\n", reason);
  std::vector<Asked> asks;
  add_asks(options, false, asks);
  add_asks(options, true, asks);
  const auto results = run_workers(asks, options.quick ? 1 : 5);
  Json json{{"schema", parameters_schema},          {"version", parameters_version},
            {"machine", driver::machine_as_json()}, {"unfit", unfit},
            {"network", options.network},           {"quick", options.quick}};
  json["in_host"] = fit_costs(measured_of(results, in_host), Settings{}.direct_bytes - 1);
  json["between_hosts"] = fit_costs(measured_of(results, between_hosts), fabric::bulk_tail_bytes_max);
  json["local"] = local_costs();
  json["local"]["switch_us"] = 0;
  json["local"]["lu_gflops"] = only_median(series_of(results, in_host, "started", "rate"));
  json["local"]["himeno_mflops"] = only_median(series_of(results, in_host, "message", "rate"));
  if (ranks_sharing_cores() != 0) {
    const auto& barrier = series_of(results, sharing_cores, "barrier", "latency");
    json["local"]["switch_us"] =
        fit_switch_us(parse_parameters(json, "the measurement"), median_at(barrier, ranks_sharing_cores()));
  }
  if (options.output != "/dev/stdout") {
    print_table("in a host", json["in_host"]);
    print_table("between hosts", json["between_hosts"]);
    fmt::print("from one rank to another that shares its core: {} us\n\n",
               driver::format_number(json["local"]["switch_us"].get<double>()));
    fmt::print("`tonari predict --parameters {} --ranks 1024` uses them.\n", options.output);
    if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  }
  driver::write_whole(options.output, json.dump(2) + "\n", remedy);
  return 0;
}

}  // namespace

void add_fit(CLI::App& bench, int& exit_status) {
  CLI::App& command = *bench.add_subcommand("fit", "Measure the parameters of messages that tonari predict needs.")
                           ->group("Benchmarks");
  const auto options = std::make_shared<FitOptions>();
  command.add_option("-o,--output", options->output, "The file to write (default: standard output)")->type_name("FILE");
  command.add_option("--network", options->network, "The transport between hosts, as for tonari run (default: any)")
      ->type_name("any|tcp|rc|ud")
      ->transform(cli::one_of({"any", "tcp", "rc", "ud"}));
  command.add_flag("--quick", options->quick, "Few sizes, one round: for a first look, and for tests")
      ->disable_flag_override();
  command.footer(
      "Measures messages of two ranks within a host, and of two ranks that this machine treats as two hosts "
      "(--apart network). The file has, by message size, the parameters of LogGP.\n\n"
      "Examples:\n"
      "  tonari bench fit -o parameters.json\n"
      "  tonari predict --parameters parameters.json --ranks 1048576");
  command.callback([options, &exit_status] {
    try {
      exit_status = fit(*options);
    } catch (const driver::Interrupted& stop) {
      cli::print_stderr("\ntonari bench fit: stopped by signal {}; nothing was written\n", stop.signal);
      exit_status = 128 + stop.signal;
    }
  });
}

}  // namespace tonari::bench::predict
