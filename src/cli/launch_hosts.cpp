#include "cli/launch_hosts.hpp"

#include "cli/launch_program.hpp"
#include "cli/preload.hpp"
#include "cli/standard_streams.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string_view>

namespace tonari::cli {

namespace {

using Words = std::vector<std::string>;

constexpr int hosts_max = 1 << 14;
constexpr auto hosts_text = "must be names of hosts separated by commas, or the number of the launcher's hosts to use";

/// The value of --hosts: names, or only a number.
struct Hosts {
  Words names;
  int count = 0;
};

bool is_name(std::string_view text) noexcept {
  constexpr std::string_view others = "-._";
  const auto fits = [&](unsigned char c) {
    return std::isalnum(c) != 0 || others.find(static_cast<char>(c)) != others.npos;
  };
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, fits);
}

Hosts read_hosts(std::string_view text) {
  Hosts hosts;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hosts.count);
  if (error == std::errc{} && end == text.data() + text.size()) {
    if (hosts.count >= 1 && hosts.count <= hosts_max) return hosts;
    throw SetupError(fmt::format("--hosts: {}, not '{}'", hosts_text, text));
  }
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const auto name = rest.substr(0, comma);
    if (!is_name(name)) throw SetupError(fmt::format("--hosts: {}, not '{}'", hosts_text, text));
    hosts.names.emplace_back(name);
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  hosts.count = static_cast<int>(hosts.names.size());
  return hosts;
}

std::vector<char*> argument_pointers(Words& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Returns the output of a command, with its standard error, where some versions of srun list their kinds of MPI. Empty
/// if it does not start or fails.
std::string output_of(Words words) {
  const std::vector<char*> arguments = argument_pointers(words);
  Pipe pipe = make_pipe();
  const pid_t child = ::fork();  // popen() would use clone3, which sandboxes may refuse
  if (child < 0) return {};
  if (child == 0) {
    ::dup2(pipe.writer.number(), STDOUT_FILENO);
    ::dup2(pipe.writer.number(), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  pipe.writer = {};
  std::string all;
  std::array<char, 4096> part;
  for (;;) {
    const auto bytes = ::read(pipe.reader.number(), part.data(), part.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    all.append(part.data(), static_cast<std::size_t>(bytes));
  }
  int status = 0;
  const bool known = ::waitpid(child, &status, 0) == child;  // not if our parent made us ignore SIGCHLD
  return !known || status == 0 ? all : std::string{};
}

bool is_installed(const char* command) { return !check_program(command); }

// Recognises Open MPI by "mpirun (Open MPI) 4.1.4", or "mpirun.openmpi (OpenRTE) 4.1.4", as versions before 5 say under
// another name than mpirun. Returns the version, or nothing for other launchers.
std::string version_of_open_mpi(const std::string& path) {
  const std::string said = output_of({path, "--version"});
  for (const std::string_view maker : {"(Open MPI) ", "(OpenRTE) "}) {
    const auto at = said.find(maker);
    if (at == said.npos) continue;
    const auto begin = at + maker.size();
    return said.substr(begin, said.find_first_of(" \n", begin) - begin);
  }
  return {};
}

// Looks in all folders of PATH: tonari and MPICH have an mpirun, too, and may come first.
void add_open_mpi(std::vector<Launcher>& found, const char* command) {
  for (const std::string& path : all_paths_of_program(command)) {
    const std::string version = version_of_open_mpi(path);
    if (version.empty()) continue;
    const auto kind = std::atoi(version.c_str()) >= 5 ? Launcher::Kind::open_mpi_5 : Launcher::Kind::open_mpi_4;
    found.push_back(
        {.kind = kind, .command = command, .path = path, .text = fmt::format("{} (Open MPI {})", command, version)});
    return;
  }
}

bool is_in_allocation() { return std::getenv("SLURM_JOB_ID") != nullptr; }

// ---- Common to the launchers: they take variables by name, and read the values from our environment ----

// Sets the variables that ranks are to find, removes the ones of another job, and returns the names to pass on.
std::set<std::string> prepare_environment(const LaunchOptions& options) {
  for (const char* const name : {"TONARI_RANK", "TONARI_SIZE", "TONARI_JOIN", "TONARI_SECRET"}) ::unsetenv(name);
  if (!options.apart.empty()) ::setenv("TONARI_APART", options.apart.c_str(), 1);
  if (!options.network.empty()) ::setenv("TONARI_NETWORK", options.network.c_str(), 1);
  std::set<std::string> names;
  for (const std::string& asked : options.environment) {
    const auto equals = asked.find('=');
    const std::string name = asked.substr(0, equals);
    if (equals != asked.npos) ::setenv(name.c_str(), asked.c_str() + equals + 1, 1);
    if (std::getenv(name.c_str()) == nullptr) {
      throw SetupError(
          fmt::format("--env {}: {} is not set here; write --env {}=VALUE, or leave it out", name, name, name));
    }
    names.insert(name);
  }
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view pair{*entry};
    const std::string name{pair.substr(0, pair.find('='))};
    if (name.starts_with("TONARI_") || name.starts_with("UCX_")) names.insert(name);
  }
  return names;
}

// ---- Open MPI and PRRTE ----

// Returns "h0:2,h1:1": if the ranks cannot be divided evenly, the first hosts get one more.
std::string slots(const Hosts& hosts, int ranks) {
  std::string text;
  for (int host = 0; host < hosts.count; ++host) {
    const int here = ranks / hosts.count + (host < ranks % hosts.count ? 1 : 0);
    text += fmt::format("{}{}:{}", host == 0 ? "" : ",", hosts.names[static_cast<std::size_t>(host)], here);
  }
  return text;
}

Words words_for_mpirun(const Launcher& launcher, const LaunchOptions& options, const Hosts& hosts, int ranks) {
  Words words{launcher.command, "-n", std::to_string(ranks)};
  if (!hosts.names.empty()) {
    words.insert(words.end(), {"--host", slots(hosts, ranks)});
  } else if (ranks % hosts.count == 0) {
    words.insert(words.end(), {"--map-by", fmt::format("ppr:{}:node", ranks / hosts.count)});
  } else {
    throw SetupError(fmt::format(
        "-n {}: {} starts the same number of ranks on each of {} hosts; name the hosts, or use a multiple of {}", ranks,
        launcher.command, hosts.count, hosts.count));
  }
  if (!options.bind.empty()) words.insert(words.end(), {"--bind-to", options.bind});
  if (options.tag_output && launcher.kind == Launcher::Kind::open_mpi_4) words.emplace_back("--tag-output");
  if (options.tag_output && launcher.kind != Launcher::Kind::open_mpi_4) words.insert(words.end(), {"--output", "tag"});
  const auto preload = preload_of_ranks(options);
  for (const std::string& name : prepare_environment(options)) {
    if (!preload || name != "LD_PRELOAD") words.insert(words.end(), {"-x", name});
  }
  if (preload) words.insert(words.end(), {"-x", "LD_PRELOAD=" + *preload});
  return words;
}

// ---- Slurm ----

Words words_for_srun(const Launcher& launcher, const LaunchOptions& options, const Hosts& hosts, int ranks) {
  Words words{launcher.command, "--mpi=pmix", fmt::format("--nodes={}", hosts.count),
              fmt::format("--ntasks={}", ranks)};
  if (!hosts.names.empty()) words.push_back(fmt::format("--nodelist={}", fmt::join(hosts.names, ",")));
  if (!options.bind.empty()) words.push_back(options.bind == "core" ? "--cpu-bind=cores" : "--cpu-bind=none");
  if (options.tag_output) words.emplace_back("--label");
  prepare_environment(options);
  const auto preload = preload_of_ranks(options);
  words.push_back(preload ? fmt::format("--export=ALL,LD_PRELOAD={}", *preload) : "--export=ALL");
  return words;
}

void refuse_options_of_one_machine(const LaunchOptions& options) {
  if (options.statistics) throw SetupError("--stats: shows only ranks of this machine; leave out --hosts, or --stats");
  if (options.timeout_seconds > 0) {
    throw SetupError(
        "--timeout: works only for ranks of this machine; with --hosts, use timeout SECONDS tonari run --hosts ...");
  }
}

Launcher choose_launcher() {
  const std::vector<Launcher> found = find_launchers();
  if (!found.empty()) return found.front();
  throw SetupError(
      "--hosts: no launcher with PMIx is installed; install mpirun of Open MPI (apt-get install openmpi-bin) or "
      "prterun, "
      "or use srun inside a Slurm allocation");
}

bool is_one(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value != nullptr && std::string_view(value) == "1";
}

void check_launcher_runs_as_root(const Launcher& launcher, std::string_view option) {
  if (::geteuid() != 0 || launcher.kind == Launcher::Kind::srun) return;
  const std::string consent =
      launcher.kind == Launcher::Kind::prterun ? "PRTE_ALLOW_RUN_AS_ROOT" : "OMPI_ALLOW_RUN_AS_ROOT";
  if (is_one(consent) && is_one(consent + "_CONFIRM")) return;
  throw SetupError(
      fmt::format("{}: {} starts nothing as root, unless {}=1 and {}_CONFIRM=1 are set: set both, or run "
                  "as another user",
                  option, launcher.text, consent, consent));
}

}  // namespace

void check_root_may_launch(std::string_view option) {
  if (::geteuid() == 0) check_launcher_runs_as_root(choose_launcher(), option);
}

std::vector<Launcher> find_launchers() {
  std::vector<Launcher> found;
  if (is_in_allocation() && is_installed("srun") &&
      output_of({"srun", "--mpi=list"}).find("pmix") != std::string::npos) {
    found.push_back({.kind = Launcher::Kind::srun, .command = "srun", .path = "srun", .text = "srun"});
  }
  add_open_mpi(found, "mpirun");
  if (found.empty()) add_open_mpi(found, "mpirun.openmpi");  // Debian's name for it where mpirun is MPICH's
  if (is_installed("prterun"))
    found.push_back({.kind = Launcher::Kind::prterun, .command = "prterun", .path = "prterun", .text = "prterun"});
  return found;
}

int launch_on_hosts(const LaunchOptions& options) {
  const Hosts hosts = read_hosts(options.hosts.value_or(""));
  const int ranks = options.ranks > 0 ? options.ranks : hosts.count;
  if (ranks < hosts.count)
    throw SetupError(fmt::format("-n {}: must be at least the number of hosts, {}", ranks, hosts.count));
  refuse_options_of_one_machine(options);

  const Launcher launcher = choose_launcher();
  const bool by_slurm = launcher.kind == Launcher::Kind::srun;
  Words words = (by_slurm ? words_for_srun : words_for_mpirun)(launcher, options, hosts, ranks);
  check_launcher_runs_as_root(launcher, "--hosts");  // --env may have set the variables
  words.insert(words.end(), options.program.begin(), options.program.end());
  const std::vector<char*> arguments = argument_pointers(words);
  std::fflush(nullptr);
  // The name stays the short one: Open MPI 4 takes a path to mean that it has the same folder on all hosts.
  ::execvp(launcher.path.c_str(), arguments.data());
  const ProgramError error = explain_exec_failure(launcher.command, errno);
  print_stderr("tonari run: {}\n", error.text);
  return error.exit_status;
}

}  // namespace tonari::cli
