// `tonari predict`: predicts collectives and programs of many ranks.

#include "predict/command.hpp"

#include "cli/options.hpp"
#include "cli/standard_streams.hpp"
#include "cli/table.hpp"
#include "driver/child.hpp"
#include "driver/question.hpp"
#include "driver/results.hpp"
#include "message/context.hpp"
#include "predict/applications.hpp"
#include "predict/check.hpp"
#include "predict/memory.hpp"
#include "predict/operations.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <system_error>

namespace tonari::bench::predict {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  int ranks = 0;
  int ranks_per_host = 1;
  std::string parameters;
  std::string operations = "barrier,broadcast,all-reduce,all-to-all";
  std::size_t bytes = 8;
  std::string network = "any";
  bool json = false;
  bool check = false;
  bool quick = false;
};

// 2^22 ranks take about 20 GiB for a barrier.
constexpr int ranks_max = 1 << 22;

struct Predicted {
  std::string operation;
  std::size_t bytes;
  Outcome outcome;
  std::string note;
};

const std::vector<Collective> collectives{Collective::barrier, Collective::broadcast, Collective::all_reduce,
                                          Collective::all_to_all};

Predicted predict_one(const std::string& operation, const Options& options, const Shape& shape,
                      const Parameters& parameters) {
  if (operation == "lu") return {operation, 0, predict_lu({}, shape, parameters), ""};
  if (operation == "himeno") return {operation, 0, predict_himeno({}, shape, parameters), ""};
  const auto collective = *std::ranges::find(collectives, operation, name_of);
  const std::size_t bytes = collective == Collective::barrier ? 0 : options.bytes;
  const bool is_closed_form = collective == Collective::all_to_all && shape.ranks > simulated_all_to_all_ranks_max;
  return {operation, bytes, predict(collective, bytes, shape, parameters), is_closed_form ? "closed form" : ""};
}

std::vector<std::string> operations_of(const Options& options) {
  std::vector<std::string> known;
  for (const auto collective : collectives) known.emplace_back(name_of(collective));
  known.insert(known.end(), {"lu", "himeno"});
  return driver::parse_choices("--operations", options.operations, known);
}

void print_text(const Shape& shape, const std::vector<Predicted>& all, const std::vector<MemoryPart>& memory) {
  std::vector<std::vector<std::string>> rows{{"operation", "bytes", "time, us", "rounds", "messages", "between hosts"}};
  for (const auto& one : all) {
    rows.push_back({one.operation + (one.note.empty() ? "" : " (" + one.note + ")"), std::to_string(one.bytes),
                    driver::format_number(one.outcome.time_us), std::to_string(one.outcome.rounds),
                    std::to_string(one.outcome.messages), std::to_string(one.outcome.messages_between_hosts)});
  }
  fmt::print("{} ranks on {} hosts\n{}\n", shape.ranks, shape.hosts(), cli::format_table(rows));
  std::vector<std::vector<std::string>> parts{{"memory of a rank", "bytes"}};
  double total = 0;
  for (const auto& part : memory) {
    parts.push_back({part.purpose, fmt::format("{:.0f}", part.bytes)});
    total += part.bytes;
  }
  parts.push_back({"together", fmt::format("{:.0f}", total)});
  fmt::print("{}without the program and its data, and without the memory of UCX\n", cli::format_table(parts));
  if (shape.hosts() == 1) {
    fmt::print("Predicted by messages. Up to {} ranks of one host use shared memory for the first three instead.\n",
               message::ranks_on_a_board_max);
  }
}

Json as_json(const Shape& shape, const std::vector<Predicted>& all, const std::vector<MemoryPart>& memory) {
  Json json{{"ranks", shape.ranks}, {"hosts", shape.hosts()}, {"predictions", Json::array()}};
  for (const auto& one : all) {
    json["predictions"].push_back({{"operation", one.operation},
                                   {"bytes", one.bytes},
                                   {"time_us", one.outcome.time_us},
                                   {"rounds", one.outcome.rounds},
                                   {"messages", one.outcome.messages},
                                   {"messages_between_hosts", one.outcome.messages_between_hosts},
                                   {"method", one.note.empty() ? "simulation" : one.note}});
  }
  json["memory_of_a_rank"] = Json::array();
  for (const auto& part : memory)
    json["memory_of_a_rank"].push_back({{"purpose", part.purpose}, {"bytes", part.bytes}});
  return json;
}

void predict_all(const Options& options, const Parameters& parameters) {
  const Shape shape{.ranks = options.ranks, .ranks_per_host = options.ranks_per_host};
  std::vector<Predicted> all;
  for (const auto& operation : operations_of(options)) {
    try {
      all.push_back(predict_one(operation, options, shape, parameters));
    } catch (const std::bad_alloc&) {
      throw SetupError(fmt::format("--ranks {}: {} needs more memory than this machine has; predict fewer ranks",
                                   options.ranks, operation));
    }
  }
  const auto memory = memory_of_rank(shape);
  options.json ? fmt::print("{}\n", as_json(shape, all, memory).dump(2)) : print_text(shape, all, memory);
}

void check_all(const Options& options, const Parameters& parameters) {
  const auto all = check(parameters, options.network, options.quick);
  if (!options.json) return fmt::print("{}", tell_checked(all));
  fmt::print("{}\n", Json{{"checked", checked_as_json(all)}, {"median_error", median_error(all)}}.dump(2));
}

int run(const Options& options) {
  if (options.parameters.empty()) {
    throw SetupError("--parameters is missing; `tonari bench fit -o parameters.json` measures them");
  }
  if (options.ranks == 0 && !options.check) throw SetupError("--ranks is missing: how many ranks?");
  static_cast<void>(operations_of(options));
  const auto parameters = read_parameters(options.parameters);
  options.check ? check_all(options, parameters) : predict_all(options, parameters);
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category(), "standard output");
  return 0;
}

void add_options(CLI::App& command, Options& options) {
  command.add_option("-n,--ranks", options.ranks, "Number of ranks, up to 4194304")
      ->type_name("N")
      ->transform(cli::whole_number("a number of ranks", 1, ranks_max));
  command.add_option("--ranks-per-host", options.ranks_per_host, "Ranks per host (default: 1)")
      ->type_name("N")
      ->transform(cli::whole_number("a number of ranks", 1, ranks_max));
  command.add_option("--parameters", options.parameters, "The file that `tonari bench fit` wrote")->type_name("FILE");
  command
      .add_option("--operations", options.operations,
                  "Operations to predict. Others: lu (order 6000, panels of 32 columns), himeno (a step of size M)")
      ->type_name("LIST")
      ->capture_default_str();
  command
      .add_option("--bytes", options.bytes,
                  "Bytes of a broadcast or of the operands, or for each rank of an all-to-all, such as 64K, below 512M "
                  "(default: 8)")
      ->type_name("SIZE")
      ->transform(cli::size_in_bytes())
      ->check([](const std::string& bytes) {
        return std::stoull(bytes) <= Programs::bytes_max ? std::string() : "must be below 512M";
      });
  command.add_flag("--json", options.json, "Print JSON")->disable_flag_override();
  command
      .add_flag("--check", options.check,
                "Measure barrier, broadcast and all-reduce of 2 to 8 ranks on this machine, and compare")
      ->disable_flag_override();
  command.add_option("--network", options.network, "For --check: the transport between hosts (default: any)")
      ->type_name("any|tcp|rc|ud")
      ->transform(cli::one_of({"any", "tcp", "rc", "ud"}));
  command.add_flag("--quick", options.quick, "For --check: 2 and 3 ranks, one round")->disable_flag_override();
}

}  // namespace

void add_predict(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<Options>();
  CLI::App& command =
      *app.add_subcommand("predict", "Predict collectives of any number of ranks by simulation.")->group("Commands");
  add_options(command, *options);
  command.footer(
      "Each rank executes the messages that tonari would send, over a simulated network with measured costs. Ranks "
      "have "
      "a core each. Also printed: the memory of the runtime in each rank.\n\n"
      "Examples:\n"
      "  tonari bench fit -o parameters.json\n"
      "  tonari predict --parameters parameters.json --ranks 1048576 --ranks-per-host 64\n"
      "  tonari predict --parameters parameters.json --check");
  command.callback([options, &exit_status] {
    try {
      exit_status = run(*options);
    } catch (const driver::Interrupted& stop) {
      cli::print_stderr("\ntonari predict: stopped by signal {}\n", stop.signal);
      exit_status = 128 + stop.signal;
    }
  });
}

}  // namespace tonari::bench::predict
