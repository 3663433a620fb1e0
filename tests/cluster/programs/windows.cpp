// Windows between real hosts, checked. The first argument names the check. Each rank prints "rank R did it" after
// success.
//
//   copies SEED       every way to push and pull, by all ranks in all parts, checked after barriers
//   locks             every rank changes counters of every rank under locks, also with readers and time limits
//   queues            descriptors posted together keep their order; one that fails; a completion counter; barriers
//   words             atomic operations and notifications of all ranks
//   multicast TIMES   rank 1 writes TIMES MiB to all other ranks
//   barriers          a push before a barrier is seen after the barrier, in many rounds
//   alone             windows of one rank, reached by all other ranks; and addresses that are refused
//   mistakes          one rank passes wrong options: all ranks throw, and then make another window
//   freed             a rank frees its part, and other ranks access it afterwards
//   crowd             many threads of each rank copy at once; their pieces need more memory than there is
//   by_key            rank 1 accesses rank 0, which is outside the library. Hangs if the network is not RDMA
//   dies_making VICTIM MICROSECONDS   all give up the window that is being made; the others make one without VICTIM
//   dies VICTIM       that rank dies while it holds a lock. Prints "R is PID", then "rank R is ready"
#include "../../support/random.hpp"
#include "../../support/rank.hpp"
#include "../../support/require.hpp"

#include <tonari/tonari.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tonari;
using test::between;
using test::name;
using test::pattern;
using test::require;
using test::require_ok;
using test::say;

/// Windows of both kinds of memory, with as many bytes of each rank.
template <class Body>
void on_both(Job& job, std::size_t bytes, const Body& body) {
  std::vector<std::byte> memory(bytes);
  Window own(job, std::span(memory));
  Window ours(job, bytes);
  body(own);
  body(ours);
  require_ok(own.barrier());
  require_ok(ours.barrier());
}

// ---- copies: each rank writes its own slice of every part, and knows what the others write

constexpr std::size_t slice_bytes = 150'000;

std::vector<Region> regions_of(std::size_t bytes) {
  std::vector<Region> regions;
  for (std::size_t at = 0; at < bytes; at += 700) regions.push_back({at, std::min<std::size_t>(700, bytes - at)});
  return regions;
}

void push_somehow(Window& window, GlobalAddress to, std::span<const std::byte> from, std::size_t way) {
  std::vector<std::byte> twin(from.begin(), from.end());
  const std::vector<Region> regions = regions_of(from.size());
  switch (way % 4) {
    case 0: return require_ok(window.push(to, from));
    case 1: return require_ok(window.push_regions(to, from, regions));
    case 2: return require_ok(window.multicast(std::span(&to, 1), from));
    default:
      for (std::byte& each : twin) each ^= std::byte{1};
      return require_ok(window.push_diff(to, from, twin).status);
  }
}

std::vector<std::byte> pulled_somehow(Window& window, GlobalAddress from, std::size_t bytes, std::size_t way) {
  std::vector<std::byte> got(bytes);
  std::vector<std::byte> twin(bytes);
  const std::vector<Region> regions = regions_of(bytes);
  switch (way % 3) {
    case 0: require_ok(window.pull(got, from)); break;
    case 1: require_ok(window.pull_regions(got, from, regions)); break;
    default: require_ok(window.pull_with_twin(got, twin, from)); require(got == twin, "a twin differs");
  }
  return got;
}

void copies(Job& job, std::uint64_t seed) {
  const auto ranks = static_cast<std::size_t>(job.size());
  on_both(job, ranks * slice_bytes, [&](Window& window) {
    test::Random random(seed);  // the same on all
    for (std::size_t turn = 0; turn < 12; ++turn) {
      const std::size_t bytes = between(random, 0, turn % 3 == 0 ? slice_bytes : 3000);
      const std::size_t offset = between(random, 0, slice_bytes - bytes);
      const auto self = job.rank().index();
      const auto mine = pattern(bytes, turn * 100 + self + 1);
      for (int rank = 0; rank < job.size(); ++rank) {
        push_somehow(window, window.at(JobRank{rank}, self * slice_bytes + offset), mine,
                     turn + static_cast<std::size_t>(rank));
      }
      require_ok(window.barrier());
      for (std::size_t writer = 0; writer < ranks; ++writer) {
        const auto theirs = pattern(bytes, turn * 100 + writer + 1);
        require(std::ranges::equal(window.local().subspan(writer * slice_bytes + offset, bytes), theirs), "here");
        const auto from = window.at(JobRank{(self + turn) % ranks}, writer * slice_bytes + offset);
        require(pulled_somehow(window, from, bytes, turn + writer) == theirs, "there");
      }
      require_ok(window.barrier_with_multicast(self * slice_bytes, pattern(100, turn)));
    }
  });
}

// ---- locks

void locks(Job& job) {
  constexpr int turns = 10;
  on_both(job, 64, [&](Window& window) {
    for (int turn = 0; turn < turns; ++turn) {
      for (int home = 0; home < job.size(); ++home) {
        std::uint64_t count = 0;
        require_ok(window.lock(JobRank{home}));
        require_ok(window.pull(std::as_writable_bytes(std::span(&count, 1)), window.at(JobRank{home})));
        ++count;
        require_ok(window.push(window.at(JobRank{home}), std::as_bytes(std::span(&count, 1))));
        require_ok(window.push(window.at(JobRank{home}, 8), std::as_bytes(std::span(&count, 1))));
        require_ok(window.unlock(JobRank{home}));
        std::array<std::uint64_t, 2> both{};
        require_ok(window.lock(JobRank{home}, 0, LockMode::shared));
        require_ok(window.pull(std::as_writable_bytes(std::span(both)), window.at(JobRank{home})));
        require_ok(window.unlock(JobRank{home}));
        require(both[0] == both[1], "a reader saw what a writer had not finished");
        const Status tried = window.try_lock(JobRank{home});
        require(tried == Status::ok || tried == Status::again, "tried");
        if (tried == Status::ok) require_ok(window.unlock(JobRank{home}));
        const Status limited = window.lock_for(std::chrono::microseconds(200), JobRank{home});
        require(limited == Status::ok || limited == Status::timed_out, "limited");
        if (limited == Status::ok) require_ok(window.unlock(JobRank{home}));
      }
    }
    require_ok(window.barrier());
    std::uint64_t count = 0;
    std::memcpy(&count, window.local().data(), sizeof count);
    require(count == static_cast<std::uint64_t>(turns) * static_cast<std::uint64_t>(job.size()), "counts were lost");
  });
}

// ---- queues

/// Posts descriptors for one rank's part: they complete in order with the right data, and only the wrong one fails.
void post_to(Window& window, int other, GlobalAddress slice, std::size_t seed) {
  constexpr std::size_t bytes = 50'000;
  const auto first = pattern(bytes, seed);
  const auto second = pattern(700, seed + 1);
  auto both = first;
  std::ranges::copy(second, both.begin() + 700);
  std::vector<std::byte> got(bytes);
  std::vector<std::byte> gaps(bytes);
  const std::array<Region, 2> regions{Region{700, 700}, Region{40'000, 10'000}};
  const std::uint64_t beyond = window.bytes(JobRank{other});
  std::array all{
      Descriptor::lock(JobRank{other}),
      Descriptor::push(slice, first),
      Descriptor::push(window.at(JobRank{other}, beyond), first),
      Descriptor::push(slice + 700, second),
      Descriptor::fetch_add(window.at(JobRank{other}), std::uint64_t{1}),
      Descriptor::pull(got, slice),
      Descriptor::pull_regions(gaps, slice, regions),
      Descriptor::flush(),
      Descriptor::unlock(JobRank{other}),
  };
  Queue queue(window);
  require_ok(queue.post(all));
  for (Descriptor& each : all) {
    require(queue.wait() == &each, "returned in another order");
    const bool wrong = each.primitive == Primitive::push && each.address.offset == beyond;
    require(each.status == (wrong ? Status::bounds : Status::ok), "its status");
  }
  require(queue.wait() == nullptr && queue.wait_all() == Status::bounds, "nothing is left but that one failed");
  require(got == both, "a pull did not see the pushes before it");
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool asked_for = std::ranges::any_of(
        regions, [i](const Region& region) { return region.offset <= i && i < region.offset + region.bytes; });
    require(gaps[i] == (asked_for ? both[i] : std::byte{0}), "regions");
  }
}

/// Counts by descriptors that a counter reports, while all other ranks do the same.
void count_everywhere(Job& job, Window& window, std::uint64_t times) {
  std::atomic<std::uint64_t> completions{0};
  std::vector<Descriptor> all;
  for (std::uint64_t time = 0; time < times; ++time) {
    for (int rank = 0; rank < job.size(); ++rank) all.push_back(Descriptor::fetch_add(window.at(JobRank{rank}, 8), 1U));
  }
  Queue queue(window, completions);
  require_ok(queue.post(all));
  while (completions.load(std::memory_order_acquire) != all.size()) {
    require(queue.poll() == nullptr, "a counted descriptor is not returned");
    std::this_thread::yield();
  }
  for (const Descriptor& each : all) require_ok(each.status);
}

/// Descriptors that are posted before a barrier's are visible after that barrier.
void meet(Job& job, Window& window) {
  const int next = (job.rank().value() + 1) % job.size();
  for (std::uint64_t turn = 1; turn <= 10; ++turn) {
    std::uint64_t seen = 0;
    std::array all{Descriptor::push(window.at(JobRank{next}, 16), std::as_bytes(std::span(&turn, 1))),
                   Descriptor::barrier(),
                   Descriptor::pull(std::as_writable_bytes(std::span(&seen, 1)), window.at(job.rank(), 16)),
                   Descriptor::barrier()};
    Queue queue(window);
    require_ok(queue.post(all));
    require_ok(queue.wait_all());
    require(seen == turn, "a barrier let what was posted before it come late");
  }
}

void queues(Job& job) {
  constexpr std::size_t words_bytes = 64;
  constexpr std::uint64_t times = 10;
  const auto ranks = static_cast<std::uint64_t>(job.size());
  on_both(job, words_bytes + ranks * slice_bytes, [&](Window& window) {
    const auto self = job.rank().index();
    for (int rank = 0; rank < job.size(); ++rank) {
      post_to(window, rank, window.at(JobRank{rank}, words_bytes + self * slice_bytes), self * 100 + 1);
    }
    count_everywhere(job, window, times);
    require_ok(window.barrier());
    require(window.fetch_add(window.at(job.rank()), std::uint64_t{0}).value == ranks, "a count was lost");
    require(window.fetch_add(window.at(job.rank(), 8), 0U).value == times * ranks, "a count was lost");
    meet(job, window);
  });
}

// ---- words

void words(Job& job) {
  constexpr std::uint64_t turns = 40;
  on_both(job, 64, [&](Window& window) {
    const auto ranks = static_cast<std::uint64_t>(job.size());
    for (std::uint64_t turn = 1; turn <= turns; ++turn) {
      for (int rank = 0; rank < job.size(); ++rank) {
        // One kind of memory's owner, or its host's processors: never both.
        require_ok(window.fetch_add(window.at(JobRank{rank}), std::uint64_t{1}).status);
        require_ok(window.fetch_add(window.at(JobRank{rank}, 8), std::int32_t{-1}).status);
      }
      const int next = (job.rank().value() + 1) % job.size();
      require_ok(window.push_notified(window.at(JobRank{next}, 16), std::as_bytes(std::span(&turn, 1)), 3));
      require_ok(window.wait_notified(3, turn));
      std::uint64_t seen = 0;
      std::memcpy(&seen, window.local().data() + 16, sizeof seen);
      require(seen >= turn, "a notification came before its data");
    }
    require_ok(window.barrier());
    require(window.fetch_add(window.at(job.rank()), std::uint64_t{0}).value == ranks * turns, "a count was lost");
  });
}

// ---- barriers

void barriers(Job& job) {
  constexpr std::uint64_t rounds = 60;
  on_both(job, static_cast<std::size_t>(job.size()) * 8, [&](Window& window) {
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      const int to = static_cast<int>((static_cast<std::uint64_t>(job.rank().value()) + round) %
                                      static_cast<std::uint64_t>(job.size()));
      const auto at = static_cast<std::uint64_t>(job.rank().value()) * 8;
      require_ok(window.push(window.at(JobRank{to}, at), std::as_bytes(std::span(&round, 1))));
      require_ok(window.barrier());
      const int from =
          static_cast<int>((static_cast<std::uint64_t>(job.rank().value()) + static_cast<std::uint64_t>(job.size()) -
                            round % static_cast<std::uint64_t>(job.size())) %
                           static_cast<std::uint64_t>(job.size()));
      std::uint64_t seen = 0;
      std::memcpy(&seen, window.local().data() + static_cast<std::size_t>(from) * 8, sizeof seen);
      require(seen == round, "a barrier let what was pushed before it come late");
      require_ok(window.barrier());
    }
  });
}

// ---- alone

bool is_refused(Job& job, GlobalAddress address) {
  try {
    (void)Window::reach(job, address);
    return false;
  } catch (const SetupError&) {
    return true;
  }
}

void alone(Job& job) {
  Communicator world(job);
  const auto others = static_cast<std::uint64_t>(job.size() - 1);
  for (int owner = 0; owner < job.size(); ++owner) {
    std::vector<Window> own;
    GlobalAddress address;
    if (job.rank() == owner) {
      own.push_back(Window::alone(job, 10'000));
      address = own.front().at(JobRank{owner}, 100);
    }
    require_ok(world.broadcast(address, Rank{owner}));
    if (job.rank() == owner) {
      require_ok(own.front().wait_notified(2, others));
      require(own.front().fetch_add(own.front().at(JobRank{owner}, 8), std::uint64_t{0}).value == others,
              "a count was lost");
    } else {
      Window there = Window::reach(job, address);
      require(there.bytes(JobRank{owner}) == 10'000 && there.number() == address.window, "is another");
      require_ok(there.lock(JobRank{owner}));
      require_ok(there.fetch_add(there.at(JobRank{owner}, 8), std::uint64_t{1}).status);
      require_ok(there.unlock(JobRank{owner}));
      require(is_refused(job, {address.window, JobRank{(owner + 1) % job.size()}, 0}), "another's");
      require(is_refused(job, {address.window + 1000, address.rank, 0}), "no window");
      require_ok(there.push_notified(address, pattern(5000, 1), 2));
    }
    require_ok(world.barrier());
    own.clear();
    require_ok(world.barrier());
    if (job.rank() != owner) require(is_refused(job, address), "was freed");
  }
}

// ---- mistakes, freed

void mistakes(Job& job) {
  for (int culprit = 0; culprit < job.size(); ++culprit) {
    WindowOptions options;
    if (job.rank() == culprit) options.rights_of = {{JobRank{-1}, Rights::all}};
    try {
      const Window window(job, 100, options);
      require(false, "was made");
    } catch (const SetupError&) {
    }
    Window next(job, 100);
    require_ok(next.barrier());
  }
}

void freed(Job& job) {
  Communicator world(job);
  for (int owner = 0; owner < job.size(); ++owner) {
    WindowOptions options;
    if (job.rank() == owner) options.rights_of = {{JobRank{(owner + 1) % job.size()}, Rights::read}};
    std::vector<Window> window;
    window.emplace_back(job, 1000, options);
    const GlobalAddress there = window.front().at(JobRank{owner});
    const auto sent = pattern(100, 1);
    if (job.rank() == (owner + 1) % job.size()) {
      require(window.front().push(there, sent) == Status::denied, "has no right");
    }
    require_ok(world.barrier());
    if (job.rank() == owner) window.clear();
    require_ok(world.barrier());
    if (job.rank() != owner) {
      require(window.front().push(there + 8, sent) != Status::ok, "was freed");
      require(window.front().lock(JobRank{owner}) == Status::bounds, "was freed with it");
      require(window.front().barrier() == Status::peer_gone, "has not come");
    }
    require_ok(world.barrier());
  }
}

// ---- dies

void dies(Job& job, int victim) {
  job.on_death([](const Death&) {});
  Window window(job, 100);
  // No connection is half made when it dies: UCX 1.13 would end the others.
  require_ok(window.fetch_add(window.at(JobRank{victim}), 0U).status);
  if (job.rank() == victim) require_ok(window.lock(JobRank{0}));
  require_ok(window.barrier());
  say(to_string(job.rank()) + " is " + std::to_string(::getpid()));
  say(name(job.rank().value()) + " is ready");
  if (job.rank() == victim) {
    for (;;) ::pause();
  }
  const Status locked = window.lock(JobRank{0});
  say(name(job.rank().value()) + " was told " + std::string(to_string(locked)));
  require(locked == Status::ok || locked == Status::holder_died, "the lock");
  require_ok(window.unlock(JobRank{0}));
  while (job.alive(JobRank{victim})) std::this_thread::yield();  // the lock's home may have heard of it earlier
  require(window.push(window.at(JobRank{victim}), pattern(100, 1)) == Status::peer_gone, "a push to it");
  require(window.fetch_add(window.at(JobRank{victim}), std::uint64_t{1}).status == Status::peer_gone,
          "an atomic operation on it");
  require(window.lock(JobRank{victim}) == Status::peer_gone, "its lock");
  require(window.barrier() == Status::peer_gone, "a barrier with it");
  say(name(job.rank().value()) + " saw peer_gone of " + std::to_string(victim));
}

// ---- dies_making

// At a moment that nobody knows; the others' windows are made or refused, and nobody waits for ever.
void dies_making(Job& job, int victim, int microseconds) {
  job.on_death([](const Death&) {});
  Communicator world(job);
  const Status begun = world.barrier();
  require(begun == Status::ok || begun == Status::peer_gone, "begun together");  // it may be dead by now
  if (job.rank() == victim) {
    std::thread([microseconds] {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }
  try {
    for (;;) Window(job, 5000, {.locks = 1});
  } catch (const SetupError&) {
  }
  std::vector<JobRank> living;
  std::ranges::copy_if(job.ranks(), std::back_inserter(living), [&](JobRank rank) { return rank != victim; });
  Window window(job, Group(living), 100);
  require_ok(window.barrier());
}

// ---- crowd: each thread has a stretch of the next rank's part for itself

void crowd(Job& job) {
  constexpr std::size_t threads = 12;
  constexpr std::size_t bytes = 400'000;
  on_both(job, threads * bytes, [&](Window& window) {
    const int next = (job.rank().value() + 1) % job.size();
    std::atomic<int> failures{0};
    const auto copy = [&](std::size_t thread) {
      const GlobalAddress there = window.at(JobRank{next}, thread * bytes);
      std::vector<std::byte> came(bytes);
      for (std::size_t round = 0; round < 8; ++round) {
        const auto sent = pattern(bytes, thread + round);
        if (window.push(there, sent) != Status::ok || window.pull(came, there) != Status::ok || came != sent)
          ++failures;
      }
    };
    {
      std::vector<std::jthread> all;
      for (std::size_t thread = 0; thread < threads; ++thread) all.emplace_back(copy, thread);
    }
    require(failures == 0, "a thread's copy failed, or came changed");
    require_ok(window.barrier());
  });
}

// ---- by_key

// Without a service thread, a rank that is outside the library does nothing for others.
void by_key(Job& job) {
  constexpr std::size_t bytes = 1 << 20;
  on_both(job, bytes, [&](Window& window) {
    const auto sent = pattern(bytes, 7);
    const GlobalAddress there = window.at(JobRank{0});
    if (job.rank() == 1) require_ok(window.push(there, pattern(bytes, 1)));  // which fetches the key
    require_ok(window.barrier());
    if (job.rank() == 0) {
      auto* const last = reinterpret_cast<unsigned char*>(&window.local().back());
      while (std::atomic_ref(*last).load() != static_cast<unsigned char>(sent.back())) {
      }
    } else {
      std::vector<std::byte> came(bytes);
      require_ok(window.push(there, std::span(sent).first(bytes - 1)));
      require_ok(window.pull(came, there));
      require(std::ranges::equal(std::span(sent).first(bytes - 1), std::span(came).first(bytes - 1)),
              "it came changed");
      require_ok(window.push(there + (bytes - 1), std::span(sent).last(1)));  // until here rank 0 has not been back
    }
    require_ok(window.barrier());
    require(job.rank() == 1 || std::ranges::equal(window.local(), sent), "what was pushed is not there");
    require_ok(window.barrier());
  });
}

void multicast(Job& job, int times) {
  constexpr std::size_t bytes = 1 << 20;
  on_both(job, bytes, [&](Window& window) {
    for (int time = 0; time < times; ++time) {
      const auto sent = pattern(bytes, static_cast<std::size_t>(time));
      if (job.rank() == 1) require_ok(window.multicast_to_all(0, sent));
      require_ok(window.barrier());
      require(job.rank() == 1 || std::ranges::equal(window.local(), sent), "a multicast came changed");
      require_ok(window.barrier());
    }
  });
}

void act(Job& job, const std::vector<std::string>& arguments) {
  const std::string& what = arguments.at(0);
  if (what == "copies") return copies(job, std::stoull(arguments.at(1)));
  if (what == "locks") return locks(job);
  if (what == "queues") return queues(job);
  if (what == "words") return words(job);
  if (what == "multicast") return multicast(job, std::stoi(arguments.at(1)));
  if (what == "barriers") return barriers(job);
  if (what == "alone") return alone(job);
  if (what == "mistakes") return mistakes(job);
  if (what == "freed") return freed(job);
  if (what == "crowd") return crowd(job);
  if (what == "by_key") return by_key(job);
  if (what == "dies_making") return dies_making(job, std::stoi(arguments.at(1)), std::stoi(arguments.at(2)));
  if (what == "dies") return dies(job, std::stoi(arguments.at(1)));
  throw std::invalid_argument("windows does not know the word " + what);
}

}  // namespace

int main(int argc, char** argv) { return test::run_rank(argc, argv, act); }
