#include "../support/counting.hpp"
#include "../support/ranks.hpp"
#include "../support/require.hpp"

#include "fabric/engine.hpp"

#include <array>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>
#include <vector>

// Tests that messages of up to 4 KiB and accesses to windows within a host make no system calls, and that these, 64 KiB
// messages and barriers allocate no more than their budgets in docs/hot-paths.md.
// Sanitizers have their own malloc, and make system calls.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The C library's own functions, which it also exports by these names.
extern "C" {
void* __libc_malloc(std::size_t bytes) noexcept;
void* __libc_calloc(std::size_t count, std::size_t bytes) noexcept;
void* __libc_realloc(void* memory, std::size_t bytes) noexcept;

void* malloc(std::size_t bytes) noexcept {
  ++tonari::test::counting::counts.allocations;
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) noexcept {
  ++tonari::test::counting::counts.allocations;
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) noexcept {
  ++tonari::test::counting::counts.allocations;
  return __libc_realloc(memory, bytes);
}
}

namespace tonari {
namespace {

using test::Counts;
using test::require_ok;

TEST(Counting, FindsASystemCallAndAnAllocation) {
  const Counts counts = test::count([] {
    ::getppid();
    int* volatile value = new int;
    delete value;
  });

  EXPECT_EQ(counts.system_calls, 1);
  EXPECT_EQ(counts.last_system_call, SYS_getppid);
  EXPECT_EQ(counts.allocations, 1);
}

// Two ranks, which are threads. The test calls both from one thread, so that no call waits.
struct Two {
  std::array<Job*, 2> jobs{};
  std::array<Communicator*, 2> worlds{};
  std::array<Window*, 2> windows{};

  [[nodiscard]] Communicator& sender() const { return *worlds[0]; }
  [[nodiscard]] Communicator& receiver() const { return *worlds[1]; }
  void take_heads(std::size_t rank) const { fabric::Engine::of(jobs[rank]->session()).progress(); }
};

void with_two(const std::function<void(const Two&)>& body) {
  Two two;
  std::barrier meet(2);
  const auto rank = [&](Job& job) {
    Communicator world(job);
    Window window(job, 4096);
    const auto self = job.rank().index();
    two.jobs[self] = &job;
    two.worlds[self] = &world;
    two.windows[self] = &window;
    meet.arrive_and_wait();
    if (self == 0) body(two);
    meet.arrive_and_wait();
    require_ok(window.barrier());
  };
  run_as_threads(2, rank, {"TONARI_SERVICE_THREAD=off"});
}

void expect_nothing(const Counts& counts) {
  EXPECT_EQ(counts.system_calls, 0) << "the last was number " << counts.last_system_call;
  EXPECT_EQ(counts.allocations, 0);
}

struct Length {
  std::size_t bytes;
};
class HotPathsOfMessages : public testing::TestWithParam<Length> {};
INSTANTIATE_TEST_SUITE_P(Of, HotPathsOfMessages, testing::Values(Length{0}, Length{8}, Length{48}, Length{4096}),
                         [](const auto& each) { return std::to_string(each.param.bytes) + "Bytes"; });

TEST_P(HotPathsOfMessages, SendAndReceiveNeedNoSystemCallAndNoAllocation) {
  with_two([](const Two& two) {
    std::vector<std::byte> buffer(GetParam().bytes);
    expect_nothing(test::count([&] {
      require_ok(two.sender().send(buffer, Rank{1}));
      require_ok(two.receiver().receive(buffer, Rank{0}).status);
    }));
  });
}

TEST_P(HotPathsOfMessages, StartedReceiveNeedsNoSystemCallAndNoAllocation) {
  with_two([](const Two& two) {
    std::vector<std::byte> buffer(GetParam().bytes);
    expect_nothing(test::count([&] {
      Request request = two.receiver().start_receive(buffer, Rank{0});
      require_ok(two.sender().send(buffer, Rank{1}));
      require_ok(request.wait().status);
    }));
  });
}

TEST_P(HotPathsOfMessages, UnexpectedMessageNeedsNoSystemCallAndAtMostOneAllocation) {
  with_two([](const Two& two) {
    std::vector<std::byte> buffer(GetParam().bytes);
    const Counts counts = test::count([&] {
      require_ok(two.sender().send(buffer, Rank{1}));
      two.take_heads(1);
      require_ok(two.receiver().receive(buffer, Rank{0}).status);
    });
    EXPECT_EQ(counts.system_calls, 0) << "the last was number " << counts.last_system_call;
    EXPECT_EQ(counts.allocations, GetParam().bytes > 48 ? 1 : 0);  // for a payload that is not in its head
  });
}

TEST(HotPaths, AccessToAWindowNeedsNoSystemCallAndNoAllocation) {
  with_two([](const Two& two) {
    Window& window = *two.windows[0];
    std::array<std::byte, 64> buffer{};
    expect_nothing(test::count([&] {
      require_ok(window.push(window.at(JobRank{1}), buffer));
      require_ok(window.pull(buffer, window.at(JobRank{1})));
      require_ok(window.fetch_add(window.at(JobRank{1}), std::uint64_t{1}).status);
      require_ok(window.flush());
    }));
  });
}

// Both programs copy it, by system calls. So only allocations are counted.
TEST(HotPaths, LongMessageNeedsNoAllocation) {
  with_two([](const Two& two) {
    std::vector<std::byte> buffer(64 * 1024);
    const auto pass_one = [&] {
      Request sent = two.sender().start_send(buffer, Rank{1});
      require_ok(two.receiver().receive(buffer, Rank{0}).status);
      require_ok(sent.wait().status);
    };
    pass_one();
    const int before = test::counting::counts.allocations;
    pass_one();
    EXPECT_EQ(test::counting::counts.allocations - before, 0);
  });
}

// A thread that waits may sleep. So only allocations are counted.
TEST(HotPaths, BarrierNeedsNoAllocation) {
  const auto rank = [](Job& job) {
    Communicator world(job);
    require_ok(world.barrier());
    const int before = test::counting::counts.allocations;
    require_ok(world.barrier());
    EXPECT_EQ(test::counting::counts.allocations - before, 0);
  };
  run_as_threads(2, rank, {"TONARI_SERVICE_THREAD=off"});
}

}  // namespace
}  // namespace tonari

#endif
