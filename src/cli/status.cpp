#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/table.hpp"
#include "job/observer.hpp"

#include <fmt/format.h>
#include <string.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace tonari::cli {

namespace {

using job::Observer;
using job::Phase;
using job::RankBlock;
using job::Wait;

constexpr auto footer =
    "Example:\n"
    "  tonari status $(pgrep -n tonari)\n"
    "\n"
    "A rank that waits shows it once the wait has become long. The counts are the rank's own: receives that wait for "
    "a\n"
    "message (posted), messages that wait for a receive (unexpected), each now and at most; sends that found no room\n"
    "(held back).";

std::string since_text(std::uint64_t since_ns) {
  const auto now_ns = monotonic_ns();
  return fmt::format("{:.1f} s", since_ns < now_ns ? static_cast<double>(now_ns - since_ns) / 1e9 : 0.0);
}

/// What a rank was doing when it was looked at, so that all that is said of it fits together.
struct Sight {
  Phase phase;
  Wait wait;
  int peer;
  int tag;
  std::uint64_t since_ns;

  explicit Sight(const RankBlock& block)
      : phase(block.phase.load(std::memory_order_acquire)),  // with the cause of a death
        wait(block.wait.load(std::memory_order_acquire)),    // with the fields below
        peer(block.wait_peer.load(std::memory_order_relaxed)),
        tag(block.wait_tag.load(std::memory_order_relaxed)),
        since_ns(block.wait_since_ns.load(std::memory_order_relaxed)) {}

  [[nodiscard]] bool waits() const noexcept { return wait != Wait::nothing && phase < Phase::left; }
};

std::string wait_text(const Sight& sight) {
  if (!sight.waits()) return "";
  std::string text{to_string(sight.wait)};
  if (sight.wait == Wait::leave) return "others to leave";
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

}  // namespace

void add_status(CLI::App& app, int&) {
  CLI::App& status = *app.add_subcommand("status", "Show the ranks of a running job: who waits for whom, since when");
  const auto process = std::make_shared<int>(0);
  status.add_option("PID", *process, "Process id of the `tonari run`, or of any of its ranks")
      ->required()
      ->type_name(" ");
  status.footer(footer);
  status.callback([process] { print_status(Observer{*process}); });
}

}  // namespace tonari::cli
