#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/table.hpp"
#include "job/observer.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <string.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace tonari::cli {

namespace {

using job::Observer;
using job::Phase;
using job::RankBlock;
using job::Wait;

constexpr int process_id_max = 1 << 22;  // the kernel's own limit

constexpr auto status_footer =
    "A rank that waits is shown as waiting once the wait has become long. Each rank counts: receives that wait for a "
    "message (posted), and messages that wait for a receive (unexpected), each now and at most; messages sent and "
    "received; sends that found no room (held back).\n"
    "\n"
    "Examples:\n"
    "  tonari status\n"
    "  tonari status 12345";

std::string since_text(std::uint64_t since_ns) {
  const auto now_ns = monotonic_ns();
  return fmt::format("{:.1f} s", since_ns < now_ns ? static_cast<double>(now_ns - since_ns) / 1e9 : 0.0);
}

/// The state of a rank at one moment, read once so that all output about it is consistent.
struct Sight {
  Phase phase;
  Wait wait;
  int peer;
  int tag;
  std::uint64_t since_ns;
  std::string call;  // the function that it waits in, as the program calls it; may be empty

  explicit Sight(const RankBlock& block)
      : phase(block.phase.load(std::memory_order_acquire)),  // acquire: the cause of a death was written before
        wait(block.wait.load(std::memory_order_acquire)),    // acquire: the fields below were written before
        peer(block.wait_peer.load(std::memory_order_relaxed)),
        tag(block.wait_tag.load(std::memory_order_relaxed)),
        since_ns(block.wait_since_ns.load(std::memory_order_relaxed)),
        call(block.wait_call.get()) {}

  [[nodiscard]] bool waits() const noexcept { return wait != Wait::nothing && phase < Phase::left; }
};

std::string wait_text(const Sight& sight) {
  if (!sight.waits()) return "";
  std::string text = sight.call.empty() ? std::string{to_string(sight.wait)} : sight.call;
  if (sight.wait == Wait::leave) return "others to leave";
  if (sight.wait == Wait::lock) return fmt::format("lock at {}", sight.peer);
  const bool sends = sight.wait == Wait::send || sight.wait == Wait::room;
  const bool has_peer = sends || sight.wait == Wait::receive || sight.wait == Wait::probe;
  if (has_peer) {
    text += sends ? " to " : " from ";
    text += sight.peer < 0 ? "any" : fmt::format("{}", sight.peer);
    text += sight.tag < 0 ? ", any tag" : fmt::format(", tag {}", sight.tag);
  }
  return text;
}

std::string phase_text(const Sight& sight, const RankBlock& block) {
  if (sight.phase != Phase::dead) return std::string{to_string(sight.phase)};
  const int signal = block.death_signal.load(std::memory_order_relaxed);  // published by the phase
  const int status = block.death_status.load(std::memory_order_relaxed);
  if (signal != 0) return fmt::format("dead: signal {} ({})", signal, ::strsignal(signal));
  return status < 0 ? "dead" : fmt::format("dead: status {}", status);
}

std::vector<std::string> row_of(int rank, const Sight& sight, const RankBlock& block) {
  const Statistics counts = block.counters.read();
  const int pid = block.pid.load(std::memory_order_relaxed);
  return {std::to_string(rank),
          pid == 0 ? "-" : std::to_string(pid),
          phase_text(sight, block),
          wait_text(sight),
          sight.waits() ? since_text(sight.since_ns) : "",
          fmt::format("{} ({})", counts.posted_now, counts.posted_max),
          fmt::format("{} ({})", counts.unexpected_now, counts.unexpected_max),
          std::to_string(counts.messages_sent),
          std::to_string(counts.messages_received),
          std::to_string(counts.held_back)};
}

// Each rank waits for one other at most: following them leads to an end, or into a circle.
std::vector<std::vector<int>> circles(const std::vector<Sight>& sights) {
  std::vector<std::vector<int>> found;
  std::vector<int> seen_from(sights.size(), -1);  // the rank from which a walk came here
  for (int first = 0; first < static_cast<int>(sights.size()); ++first) {
    int rank = first;
    const auto at = [&](int of) { return static_cast<std::size_t>(of); };
    while (rank >= 0 && at(rank) < sights.size() && seen_from[at(rank)] < 0) {
      seen_from[at(rank)] = first;
      rank = sights[at(rank)].waits() ? sights[at(rank)].peer : -1;
    }
    if (rank < 0 || at(rank) >= sights.size() || seen_from[at(rank)] != first) continue;
    std::vector<int>& circle = found.emplace_back();
    const int start = rank;
    do {
      circle.push_back(rank);
      rank = sights[at(rank)].peer;
    } while (rank != start);
  }
  return found;
}

std::string circle_text(const std::vector<int>& circle) {
  std::string text = fmt::format("rank {} waits for ", circle.front());
  for (std::size_t i = 1; i < circle.size(); ++i) text += fmt::format("rank {}, which waits for ", circle[i]);
  return text + (circle.size() == 1 ? "itself" : fmt::format("rank {}", circle.front()));
}

void print_status(const Observer& job) {
  std::vector<std::vector<std::string>> rows{{"rank", "pid", "phase", "waits for", "since", "posted (max)",
                                              "unexpected (max)", "sent", "received", "held back"}};
  std::vector<Sight> sights;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const Sight& sight = sights.emplace_back(job.block(rank));
    rows.push_back(row_of(rank, sight, job.block(rank)));
  }
  fmt::print("{} rank{}, started by `tonari run` (pid {}) {} ago\n{}", job.ranks(), job.ranks() == 1 ? "" : "s",
             job.starter(), since_text(job.header().created_ns), format_table(rows));
  for (const auto& circle : circles(sights)) fmt::print("a circle: {}\n", circle_text(circle));
}

/// Returns the command line of a process in one line, cut after some characters.
std::string command_of(pid_t process) {
  constexpr std::size_t shown_max = 60;
  std::ifstream file{fmt::format("/proc/{}/cmdline", process)};
  std::string all;
  for (std::string word; std::getline(file, word, '\0');) all += (all.empty() ? "" : " ") + word;
  if (all.size() > shown_max) all = all.substr(0, shown_max) + "...";
  return all;
}

void list_jobs() {
  std::vector<std::vector<std::string>> rows{{"pid", "ranks", "for", "command"}};
  for (const pid_t starter : job::running_jobs()) {
    try {
      const Observer seen{starter};
      rows.push_back({std::to_string(starter), std::to_string(seen.ranks()), since_text(seen.header().created_ns), ""});
    } catch (const SetupError&) {  // the job is another user's, or has just ended
      rows.push_back({std::to_string(starter), "-", "-", ""});
    }
    rows.back().back() = command_of(starter);
    if (rows.back().back().empty()) rows.pop_back();
  }
  if (rows.size() == 1) {
    fmt::print("no `tonari run` is running here\n");
  } else {
    fmt::print("{}", format_table(rows));
  }
}

}  // namespace

void add_status(CLI::App& app, int&) {
  CLI::App& status =
      *app.add_subcommand("status", "Show the ranks of a running job: which rank waits for which, and for how long.")
           ->group("Commands");
  const auto process = std::make_shared<int>(0);
  status
      .add_option("PID", *process,
                  "Process id of the `tonari run`, or of any of its ranks. Without it: lists the jobs that run here")
      ->transform(whole_number("a process id", 1, process_id_max))
      ->option_text("[PID]")
      ->group("Job");
  status.footer(status_footer);
  status.callback([process] { *process == 0 ? list_jobs() : print_status(Observer{*process}); });
}

}  // namespace tonari::cli
