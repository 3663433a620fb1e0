// A rank that joins by its launcher without a tonari::Job around, does what its arguments say, one after the other, and
// leaves. It says first "rank R of N: host H of C, NAME; K ms", where K is how long joining took.
//
//   exchange BYTES  exchanges addresses of so many bytes and says "exchanged"
//   arena           writes into its block, waits until all ranks of this host have, and says "sees RANK..."
//   pid             says "R is PID"
//   wait            waits until a rank of this host has died and says "RANK died: signal S status T"
//   await-server    waits until the launcher's server on this host is gone and says "orphaned"
//   hold            sleeps until a signal ends it
//   exit STATUS     calls _exit
//   again           joins a second time and prints the result
//   fork            forks a child that exits without a word, and says "child ended with S"
//   read            waits for the end of its input
//   only RANK       skips the next word, and its argument, unless this is RANK
//   mpi-begin, mpi-end, mpi-sum   what mpi_part.c, which is loaded before, makes of MPI
#include "job/joining.hpp"
#include "base/clock.hpp"
#include "base/settings.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using tonari::job::JoiningPmix;
using tonari::job::Membership;
using tonari::job::Phase;

std::vector<std::byte> address_of(int rank, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(rank + 1));
}

class Actor {
 public:
  explicit Actor(std::vector<std::string> words) : words_(std::move(words)) {}

  void play() {
    while (next_ < words_.size()) act(take());
  }

 private:
  std::string take() { return words_.at(next_++); }
  int number() { return std::stoi(take()); }
  [[nodiscard]] int rank() const noexcept { return member_.rank; }

  static void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  void act(const std::string& word) {
    if (word == "join") return join();
    if (word == "leave") return joining_.reset();
    if (word == "exchange") return exchange(static_cast<std::size_t>(number()));
    if (word == "arena") return look_around();
    if (word == "pid") return say(std::to_string(rank()) + " is " + std::to_string(::getpid()));
    if (word == "wait") return wait_for_death();
    if (word == "await-server") return wait_for_end_of_server();
    if (word == "hold") return hold();
    if (word == "exit") ::_exit(number());
    if (word == "again") return join_again();
    if (word == "fork") return fork_child();
    if (word == "read") return read();
    if (word == "only") return skip_unless(number() == rank());
    if (word == "mpi-begin") return static_cast<void>(mpi("mpi_begin"));
    if (word == "mpi-end") return static_cast<void>(mpi("mpi_end"));
    if (word == "mpi-sum") return say(fmt::format("sum {}", mpi("mpi_sum")));
    throw std::invalid_argument("joining does not know the word " + word);
  }

  void skip_unless(bool wanted) {
    static const std::set<std::string> with_argument{"exchange", "exit", "only"};
    if (!wanted && with_argument.contains(take())) ++next_;
  }

  static int mpi(const char* name) {
    void* const function = ::dlsym(RTLD_DEFAULT, name);
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is not loaded");
    return reinterpret_cast<int (*)()>(function)();
  }

  void join() {
    const auto before_ns = tonari::monotonic_ns();
    joining_ = std::make_unique<JoiningPmix>();
    member_ = joining_->join(tonari::read_settings());
    const auto took_ms = static_cast<double>(tonari::monotonic_ns() - before_ns) / 1e6;
    const int host = member_.hosts.empty() ? 0 : member_.hosts.at(static_cast<std::size_t>(rank()));
    const std::string name = member_.host_names.empty() ? "" : member_.host_names.at(static_cast<std::size_t>(host));
    const auto hosts = member_.host_names.empty() ? 1 : member_.host_names.size();
    char line[200];
    std::snprintf(line, sizeof line, "rank %d of %d: host %d of %zu, %s; %.1f ms", rank(), member_.size, host, hosts,
                  name.c_str(), took_ms);
    say(line);
  }

  void exchange(std::size_t bytes) {
    const auto own = address_of(rank(), bytes + static_cast<std::size_t>(rank()));
    const auto all = joining_->exchange(own);
    if (static_cast<int>(all.size()) != member_.size) throw std::runtime_error("not of all ranks");
    for (int other = 0; other < member_.size; ++other) {
      const auto index = static_cast<std::size_t>(other);
      if (all[index] != address_of(other, bytes + index)) throw std::runtime_error("not what was given");
    }
    say("exchanged");
  }

  [[nodiscard]] bool is_here(int other) const {
    const auto& hosts = member_.hosts;
    return hosts.empty() || hosts.at(static_cast<std::size_t>(other)) == hosts.at(static_cast<std::size_t>(rank()));
  }

  void look_around() {
    auto& arena = *member_.arena;
    arena.block(rank()).full.store(1);
    std::string seen = "sees";
    for (int other = 0; other < member_.size; ++other) {
      const auto& block = arena.block(other);
      if (!is_here(other)) {
        if (block.phase.load() != Phase::running) throw std::runtime_error("a remote rank is not running");
        continue;
      }
      while (block.full.load() == 0) std::this_thread::yield();
      if (block.pid.load() == 0 || block.phase.load() != Phase::joined)
        throw std::runtime_error("a block is not filled");
      seen += fmt::format(" {}", other);
    }
    say(fmt::format("{}, cores {}, direct {}", seen, arena.header().cores, member_.direct_copies ? "yes" : "no"));
  }

  void wait_for_death() {
    auto& arena = *member_.arena;
    while (arena.header().deaths.load(std::memory_order_acquire) == 0) std::this_thread::yield();
    for (int other = 0; other < member_.size; ++other) {
      const auto& block = arena.block(other);
      if (block.phase.load(std::memory_order_acquire) != Phase::dead) continue;
      say(std::to_string(other) + " died: signal " + std::to_string(block.death_signal.load()) + " status " +
          std::to_string(block.death_status.load()));
    }
  }

  void wait_for_end_of_server() {
    while (joining_->starter_alive()) std::this_thread::yield();
    say("orphaned");
  }

  static void hold() {
    for (;;) ::pause();
  }

  static void read() {
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
  }

  static void join_again() {
    try {
      JoiningPmix second;
      second.join(tonari::read_settings());
      say("joined again");
    } catch (const tonari::SetupError& error) {
      say(error.what());
    }
  }

  static void fork_child() {
    const pid_t child = ::fork();
    if (child == 0) std::exit(7);
    int status = 0;
    ::waitpid(child, &status, 0);
    say(fmt::format("child ended with {}", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)));
  }

  std::vector<std::string> words_;
  std::size_t next_ = 0;
  std::unique_ptr<JoiningPmix> joining_;
  Membership member_;
};

}  // namespace

int main(int count, char** arguments) {
  try {
    Actor{{arguments + 1, arguments + count}}.play();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
