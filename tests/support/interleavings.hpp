#pragma once

#include "random.hpp"

#include <ucontext.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Runs several actors. One actor at a time moves, from one access of shared memory to its next. The orders of moves are
// all that are possible, or random ones. An actor can be stopped for ever between any two accesses, as by SIGKILL.
// Accesses are sequentially consistent: ThreadSanitizer has to find faults that need a weaker order.
namespace tonari::test {

/// The scheduler of an execution. The code to check is a World of actors:
///
///   void start()               restores the initial state
///   void act(int actor)        does all that the actor does. Calls Turns::next() before each access
///   void killed(int actor)     is called when the actor is stopped
///   void rung(int actor)       makes the actor look again, since the death of another has become known
///   std::uint64_t state()      a hash of shared memory, which decides how an execution continues
///   void ended()               is called when all living actors have ended
class Turns {
 public:
  struct Move {
    enum class What : std::uint8_t { run, kill, know, ring } what;
    int actor;
  };
  enum class Life : std::uint8_t { alive, dead, known_dead, all_told };  // an actor passes through these in this order

  explicit Turns(int actors) : actors_(static_cast<std::size_t>(actors)) {}

  /// The scheduler whose actor runs at this moment; null outside of actors.
  static Turns*& current() {
    static Turns* turns = nullptr;
    return turns;
  }

  /// Begins an execution.
  void start(std::function<void(int)> act, int deaths_max) {
    act_ = std::move(act);
    deaths_left_ = deaths_max;
    failure_.clear();
    for (Actor& actor : actors_) {
      actor.life = Life::alive;
      actor.ended = actor.parked = false;
      actor.history = 0;
#if defined(__SANITIZE_ADDRESS__)
      ASAN_UNPOISON_MEMORY_REGION(actor.stack.get(),
                                  stack_bytes);  // the last execution may have left frames on the stack
#endif
      ::getcontext(&actor.context);
      actor.context.uc_stack.ss_sp = actor.stack.get();
      actor.context.uc_stack.ss_size = stack_bytes;
      actor.context.uc_link = nullptr;
      ::makecontext(&actor.context, &Turns::enter, 0);
    }
  }
  /// Returns all possible next moves. If there are none, no actor moves any more.
  const std::vector<Move>& moves() {
    moves_.clear();
    for (int each = 0; each < count(); ++each) {
      const Actor& actor = at(each);
      if (actor.life == Life::alive && !actor.ended && !actor.parked) moves_.push_back({Move::What::run, each});
      if (actor.life == Life::dead) moves_.push_back({Move::What::know, each});
      if (actor.life == Life::known_dead) moves_.push_back({Move::What::ring, each});
    }
    if (moves_.empty() || deaths_left_ == 0) return moves_;
    for (int each = 0; each < count(); ++each) {
      if (at(each).life == Life::alive && !at(each).ended) moves_.push_back({Move::What::kill, each});
    }
    return moves_;
  }
  template <class World>
  void make(const Move& move, World& world) {
    Actor& actor = at(move.actor);
    switch (move.what) {
      case Move::What::run: run(move.actor); break;
      case Move::What::know: actor.life = Life::known_dead; break;
      case Move::What::kill:
        --deaths_left_;
        actor.life = Life::dead;
        actor.history = 0;
        world.killed(move.actor);
        break;
      case Move::What::ring:
        actor.life = Life::all_told;
        for (int other = 0; other < count(); ++other) {
          at(other).parked = false;
          world.rung(other);
        }
    }
  }

  // The following are called by actors.

  void next() {
    note(next_mark);  // the actor is one step further, even if it has read nothing
    yield();
  }
  void note(std::uint64_t seen) { at(running_).history = mixed(at(running_).history, seen); }
  /// Says that of all that the actor has read, only `but` can still influence it.
  void forget(std::uint64_t but) { at(running_).history = but; }
  void park() {
    at(running_).parked = true;
    yield();
  }
  void unpark(int actor) { at(actor).parked = false; }
  [[nodiscard]] bool is_known_dead(int actor) {
    next();
    const bool known = at(actor).life >= Life::known_dead;
    note(known ? 1 : 0);
    return known;
  }

  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] bool is_dead(int actor) const { return actors_[static_cast<std::size_t>(actor)].life != Life::alive; }
  [[nodiscard]] bool all_ended() const {
    for (const Actor& actor : actors_) {
      if (actor.life == Life::alive && !actor.ended) return false;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t state(std::uint64_t state) const {
    for (const Actor& actor : actors_) {
      state = mixed(state, actor.history);
      state = mixed(state, static_cast<unsigned>(actor.life) * 4 + (actor.ended ? 1u : 0u) + (actor.parked ? 2u : 0u));
    }
    return state;
  }
  static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15 + 0x7f4a7c15;
    return hash ^ hash >> 29;
  }

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;
  static constexpr std::uint64_t next_mark = 0x517cc1b727220a95;

  struct Actor {
    ucontext_t context{};
    Life life = Life::alive;
    bool ended = false;
    bool parked = false;        // until another actor wakes it
    std::uint64_t history = 0;  // a hash of all values it has read; with shared memory it decides what it does next
    std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
  };

  [[nodiscard]] int count() const { return static_cast<int>(actors_.size()); }
  Actor& at(int actor) { return actors_[static_cast<std::size_t>(actor)]; }
  static void enter() {
    Turns& turns = *current();
    turns.arrived();
    turns.act_(turns.running_);
    turns.at(turns.running_).ended = true;
    turns.yield();
  }
  void run(int actor) {
    running_ = actor;
    current() = this;
    switch_to(main_, at(actor).context, at(actor).stack.get(), stack_bytes);
    current() = nullptr;
  }
  void yield() { switch_to(at(running_).context, main_, main_stack_, main_stack_bytes_); }

#if defined(__SANITIZE_ADDRESS__)
  void switch_to(ucontext_t& from, ucontext_t& to, const void* stack, std::size_t bytes) {
    void* kept = nullptr;
    __sanitizer_start_switch_fiber(&kept, stack, bytes);
    ::swapcontext(&from, &to);
    __sanitizer_finish_switch_fiber(kept, &from_stack_, &from_bytes_);
    if (&from != &main_) note_main_stack();
  }
  void arrived() {
    __sanitizer_finish_switch_fiber(nullptr, &from_stack_, &from_bytes_);
    note_main_stack();
  }
  void note_main_stack() {
    main_stack_ = from_stack_;
    main_stack_bytes_ = from_bytes_;
  }
  const void* from_stack_ = nullptr;
  std::size_t from_bytes_ = 0;
#else
  static void switch_to(ucontext_t& from, ucontext_t& to, const void*, std::size_t) { ::swapcontext(&from, &to); }
  void arrived() {}
#endif
  const void* main_stack_ = nullptr;
  std::size_t main_stack_bytes_ = 0;

  std::vector<Actor> actors_;
  std::function<void(int)> act_;
  std::vector<Move> moves_;
  std::string failure_;
  ucontext_t main_{};
  int running_ = 0;
  int deaths_left_ = 0;
};

/// Like std::atomic, for actors of an execution of Turns. Not for threads.
template <class T>
class SteppedAtomic {
 public:
  T load(std::memory_order = std::memory_order_seq_cst) const { return seen(turn(), value_); }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    turn();
    value_ = value;
  }
  T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) {
    return seen(turn(), std::exchange(value_, static_cast<T>(value_ + value)));
  }
  T fetch_or(T value, std::memory_order = std::memory_order_seq_cst) {
    return seen(turn(), std::exchange(value_, value_ | value));
  }
  T fetch_and(T value, std::memory_order = std::memory_order_seq_cst) {
    return seen(turn(), std::exchange(value_, value_ & value));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst) {
    Turns* const turns = turn();
    const T was = seen(turns, value_);
    if (was == expected) {
      value_ = value;
      return true;
    }
    expected = was;
    return false;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, value, order);
  }
  /// Reads the value without a move.
  [[nodiscard]] T peek() const { return value_; }

 private:
  static Turns* turn() {
    Turns* const turns = Turns::current();
    if (turns != nullptr) turns->next();
    return turns;
  }
  static T seen(Turns* turns, T value) {
    if (turns != nullptr) turns->note(value);
    return value;
  }

  T value_;
};

struct Explored {
  std::size_t executions = 0;
  std::size_t states = 0;
  bool complete = true;   // false if there are more executions than `executions_max`
  std::string failure{};  // the failure of the first execution that failed, with its moves
};

/// Runs one execution. `choose(moves, state)` returns the index of the next move, or -1 to stop. Returns the failure;
/// empty if there was none.
template <class World, class Choose>
std::string execute(World& world, Turns& turns, int deaths_max, Choose choose) {
  constexpr std::array names{" ", " kill ", " know ", " ring "};
  world.start();
  turns.start([&world](int actor) { world.act(actor); }, deaths_max);
  std::string trace;
  while (turns.failure().empty()) {
    const auto& moves = turns.moves();
    if (moves.empty()) {
      if (!turns.all_ended()) return trace + ": the other actors sleep for ever";
      world.ended();
      break;
    }
    const int chosen = choose(moves, turns.state(world.state()));
    if (chosen < 0) return "";
    const Turns::Move move = moves[static_cast<std::size_t>(chosen)];
    trace += names[static_cast<std::size_t>(move.what)] + std::to_string(move.actor);
    turns.make(move, world);
  }
  return turns.failure().empty() ? "" : trace + ": " + turns.failure();
}

/// Runs all executions with up to `deaths_max` deaths, and continues from each state once. Stops after
/// `executions_max` executions.
template <class World>
Explored explore(World& world, Turns& turns, int deaths_max, std::size_t executions_max) {
  struct Choice {
    int chosen;
    int count;
  };
  Explored result;
  std::unordered_set<std::uint64_t> visited;
  std::vector<Choice> path;
  do {
    if (result.executions++ == executions_max) {
      result.complete = false;
      break;
    }
    std::size_t depth = 0;
    result.failure = execute(world, turns, deaths_max, [&](const auto& moves, std::uint64_t state) {
      if (depth == path.size()) {
        if (!visited.insert(state).second) return -1;
        path.push_back({0, static_cast<int>(moves.size())});
      }
      return path[depth++].chosen;
    });
    if (!result.failure.empty()) break;
    while (!path.empty() && ++path.back().chosen == path.back().count) path.pop_back();
  } while (!path.empty());
  result.states = visited.size();
  return result;
}

/// Runs `executions` random executions, in which deaths are rare.
template <class World>
Explored explore_randomly(World& world, Turns& turns, int deaths_max, std::size_t executions, Random& random) {
  Explored result;
  result.complete = false;
  while (result.executions < executions && result.failure.empty()) {
    ++result.executions;
    const auto percent_switch = static_cast<unsigned>(between(random, 1, 100));
    int last = -1;
    result.failure = execute(world, turns, deaths_max, [&](const auto& moves, std::uint64_t) {
      for (std::size_t i = 0; i < moves.size() && !chance(random, percent_switch); ++i) {
        if (moves[i].what == Turns::Move::What::run && moves[i].actor == last) return static_cast<int>(i);
      }
      std::size_t chosen = between(random, 0, moves.size() - 1);
      if (moves[chosen].what == Turns::Move::What::kill && !chance(random, 10)) chosen = 0;  // move 0 is never a death
      last = moves[chosen].actor;
      return static_cast<int>(chosen);
    });
  }
  return result;
}

}  // namespace tonari::test
