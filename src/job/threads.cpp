#include "job/joining.hpp"
#include "job/session.hpp"

#include <unistd.h>

#include <exception>
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tonari {

namespace {

/// State that the threads of one job share.
struct Team {
  Team(int ranks, const Settings& settings)
      : arena(std::make_shared<job::Arena>(job::Arena::create(ranks, settings))), joining(ranks) {}

  /// Keeps the first exception. A rank records its exception before the others learn of its death, so exceptions caused
  /// by the death come later.
  void record_failure(std::exception_ptr thrown) {
    const std::lock_guard guard(mutex);
    if (!failure) failure = std::move(thrown);
  }

  std::shared_ptr<job::Arena> arena;
  std::latch joining;
  std::mutex mutex;
  std::exception_ptr failure;
};

class JoiningThreads final : public job::Joining {
 public:
  JoiningThreads(Team& team, int rank) : team_(team), rank_(rank) {}

  job::Membership join(const Settings& settings) override {
    team_.arena->block(rank_).pid.store(::getpid(), std::memory_order_relaxed);  // published by the phase
    team_.arena->advance(rank_, job::Phase::joined);
    team_.joining.arrive_and_wait();
    job::Membership member{.rank = rank_, .size = team_.arena->ranks(), .arena = team_.arena, .threads = true};
    member.direct_copies = settings.direct_copies;
    member.secret.resize(job::secret_bytes);  // zeros suffice, because nothing leaves this process
    return member;
  }
  job::Addresses exchange(std::span<const std::byte> address) override {
    return job::exchange_in_arena(*team_.arena, rank_, address);
  }

 private:
  Team& team_;
  int rank_;
};

void run_rank(Team& team, int rank, const std::function<void(Job&)>& body, const Settings& settings) noexcept {
  try {
    Job job{std::make_shared<job::Session>(std::make_unique<JoiningThreads>(team, rank), settings)};
    try {
      body(job);
    } catch (...) {
      team.record_failure(std::current_exception());
      throw;  // rethrow past the Job, so that its destructor sees that the rank dies
    }
  } catch (...) {
    team.record_failure(std::current_exception());
  }
}

}  // namespace

void run_as_threads(int ranks, const std::function<void(Job&)>& body, const std::vector<std::string>& settings) {
  const Settings read = read_settings(settings);
  Team team{ranks, read};
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    try {
      threads.emplace_back([&, rank] { run_rank(team, rank, body, read); });
    } catch (const std::system_error&) {
      team.record_failure(std::current_exception());
      team.arena->mark_dead(rank, 0, 1);  // tells the ranks that have started
      team.joining.count_down();
    }
  }
  threads.clear();  // joins
  if (team.failure) std::rethrow_exception(team.failure);
}

}  // namespace tonari
