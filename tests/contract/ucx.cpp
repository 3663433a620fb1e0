#include "fabric/ucx/wire.hpp"

#include "../support/random.hpp"
#include "base/file_descriptor.hpp"
#include "fabric/ucx/library.hpp"
#include "ucx_world.hpp"

#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

// Tests promises that only the network makes. They are about deaths, strangers, floods, sleeping and leaving.
namespace tonari::fabric {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto ignore = [](const Head&) noexcept {};

Head head_of(int source, std::uint32_t number) {
  Head head{};
  head.kind = HeadKind{1};
  head.source = static_cast<std::uint32_t>(source);
  head.tag = number;
  return head;
}

/// Repeats `step` until it returns true. Returns false if it does not within a minute.
template <class Step>
bool repeat_until(Step step) {
  constexpr auto for_ever = 60s;  // enough on the busiest machine
  const auto until = Clock::now() + for_ever;
  while (!step()) {
    if (Clock::now() > until) return false;
  }
  return true;
}

struct Ucx : testing::Test {
  void SetUp() override {
    if (!no_ucx().empty()) GTEST_SKIP() << no_ucx();
  }
};

std::pair<unsigned, unsigned> ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucx::library().get_version(&major, &minor, &release);
  return {major, minor};
}

std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// Rank 1, in a child process that sends `heads` heads to rank 0 in this process, and polls until it is killed.
class Child {
 public:
  explicit Child(std::uint32_t heads) {
    int to_child[2];
    int to_parent[2];
    if (::pipe(to_child) != 0 || ::pipe(to_parent) != 0) std::abort();
    pid_ = ::fork();  // before this process has a wire
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      live(to_child[0], to_parent[1], heads);
    }
    const FileDescriptor ends[] = {FileDescriptor{to_child[0]}, FileDescriptor{to_parent[1]}};
    const FileDescriptor out{to_child[1]};
    const FileDescriptor in{to_parent[0]};
    wire = std::make_unique<ucx::Wire>(ucx_settings(2, 0));
    tell(out.number(), *wire);
    wire->introduce(1, hear(in.number()));
  }
  ~Child() { kill(); }

  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }

  std::unique_ptr<ucx::Wire> wire;

 private:
  [[noreturn]] static void live(int in, int out, std::uint32_t heads) {
    ucx::Wire wire(ucx_settings(2, 1));
    tell(out, wire);
    wire.introduce(0, hear(in));
    for (std::uint32_t sent = 0;;) {
      if (sent < heads && wire.send(0, head_of(1, sent), Lane::request) == Status::ok) ++sent;
      wire.poll(16, ignore);
    }
  }
  static void tell(int to, const ucx::Wire& wire) {
    const std::size_t bytes = wire.address().size();
    if (::write(to, &bytes, sizeof bytes) != sizeof bytes) std::abort();
    if (::write(to, wire.address().data(), bytes) != static_cast<ssize_t>(bytes)) std::abort();
  }
  static std::vector<std::byte> hear(int from) {
    std::size_t bytes = 0;
    if (::read(from, &bytes, sizeof bytes) != sizeof bytes) std::abort();
    std::vector<std::byte> address(bytes);
    if (::read(from, address.data(), bytes) != static_cast<ssize_t>(bytes)) std::abort();
    return address;
  }

  pid_t pid_ = 0;
};

void expect_gone(ucx::Wire& wire) {
  EXPECT_TRUE(repeat_until([&] {
    wire.poll(16, ignore);
    return wire.gone(1);
  }));
  EXPECT_EQ(wire.send(1, head_of(0, 0), Lane::request), Status::peer_gone);
  EXPECT_EQ(wire.send(1, head_of(0, 0), Lane::reply), Status::peer_gone);
  EXPECT_EQ(wire.gone_count(), 1U);
  EXPECT_FALSE(wire.reason(1).empty());
}

TEST_F(Ucx, ASenderIsToldThatItsPeerWasKilled) {
  Child child(1);
  ucx::Wire& wire = *child.wire;
  std::uint32_t sent = 0;
  std::size_t heard = 0;
  ASSERT_TRUE(repeat_until([&] {
    if (wire.send(1, head_of(0, sent), Lane::request) == Status::ok) ++sent;
    wire.poll(16, [&](const Head&) noexcept { ++heard; });
    return heard == 1 && sent > static_cast<std::uint32_t>(test::rounds(10'000));
  }));

  child.kill();

  EXPECT_TRUE(repeat_until([&] {
    wire.poll(16, ignore);
    return wire.send(1, head_of(0, sent), Lane::request) == Status::peer_gone;
  }));
  expect_gone(wire);
}

TEST_F(Ucx, ARankThatOnlyPollsIsToldThatItsPeerWasKilled) {
  Child child(1);
  std::size_t heard = 0;
  ASSERT_TRUE(repeat_until([&] {
    child.wire->poll(16, [&](const Head&) noexcept { ++heard; });
    return heard == 1;
  }));
  for (int polls = 0; polls < 1000; ++polls) child.wire->poll(16, ignore);

  child.kill();

  expect_gone(*child.wire);
}

TEST_F(Ucx, APeerThatDiedBeforeTheFirstHeadIsReported) {
  if (ucx_network() != "tcp" && ucx_version() < std::pair(1U, 14U)) {
    GTEST_SKIP() << "this UCX ends a process that fails to connect to a dead peer (openucx/ucx#8175)";
  }
  Child child(0);
  child.kill();

  EXPECT_TRUE(repeat_until([&] {
    child.wire->poll(16, ignore);
    return child.wire->send(1, head_of(0, 0), Lane::request) == Status::peer_gone;
  }));
  expect_gone(*child.wire);
}

TEST_F(Ucx, ForgettingAPeerEndsItsConnectionAndNoOther) {
  UcxWires wires(3);
  greet(wires);

  wires[0].forget(1);

  EXPECT_EQ(wires[0].send(1, head_of(0, 0), Lane::request), Status::peer_gone);
  EXPECT_TRUE(wires[0].was_reached(1));
  EXPECT_TRUE(wires[0].reason(1).empty()) << "the caller of forget() knows the reason; the network does not";
  EXPECT_EQ(wires[0].send(2, head_of(0, 7), Lane::request), Status::ok);
  std::uint32_t got = 0;
  EXPECT_TRUE(repeat_until([&] {
    wires[0].poll(16, ignore);
    wires[2].poll(16, [&](const Head& head) noexcept { got = head.tag; });
    return got == 7;
  }));
}

TEST_F(Ucx, DoesNotWaitForCreditsOfAPeerThatHasGone) {
  UcxWires wires(2);
  greet(wires);
  Ordered<ucx::Wire> ordered(wires[0], 2, 0, ucx_windows);
  for (std::uint32_t i = 0; i < ucx_windows.requests; ++i) {
    ASSERT_EQ(ordered.send(1, head_of(0, i), Lane::request), Status::ok);
  }
  ASSERT_EQ(ordered.send(1, head_of(0, 0), Lane::request), Status::again);

  wires[0].forget(1);

  EXPECT_EQ(ordered.send(1, head_of(0, 0), Lane::request), Status::peer_gone);
}

struct Tails : Ucx {
  void SetUp() override {
    Ucx::SetUp();
    if (IsSkipped()) return;
    auto settings = ucx_settings(2, 0);
    settings.owner = &sent;
    settings.tail_sent = [](void* places, std::uint64_t place) noexcept {
      static_cast<std::vector<std::uint64_t>*>(places)->push_back(place);
    };
    sent.reserve(16);
    from = std::make_unique<ucx::Wire>(settings);
    to = std::make_unique<ucx::Wire>(ucx_settings(2, 1));
    from->introduce(1, address_of(*to));
    to->introduce(0, address_of(*from));
  }
  void send(std::span<const std::byte> bytes, std::uint64_t place, std::uint64_t bytes_said) {
    Head head = head_of(0, 0);
    head.kind = HeadKind{KindNumber<Protocol::message>::with_tail(2)};
    head.set(Tail{bytes_said, place});
    ASSERT_EQ(from->send(1, head, Lane::request, {bytes, place}), Status::ok);
  }
  bool poll_until(auto done) {
    return repeat_until([&] {
      from->poll(16, ignore);
      to->poll(16, [this](const Head& head) noexcept { came[heads++] = head.as<Tail>(); });
      return done();
    });
  }

  std::vector<std::uint64_t> sent;
  std::array<Tail, 16> came;
  std::size_t heads = 0;
  std::unique_ptr<ucx::Wire> from, to;
};

TEST_F(Tails, ArriveWithTheirHeadsAndStayUntilReleased) {
  const std::array<std::size_t, 4> lengths{1, 300, 5000, 16384};
  std::vector<std::vector<std::byte>> tails;
  for (const std::size_t bytes : lengths) {
    tails.emplace_back(bytes, static_cast<std::byte>(bytes));
    send(tails.back(), tails.size(), bytes);
  }

  ASSERT_TRUE(poll_until([&] { return heads == lengths.size() && sent.size() == lengths.size(); }));

  std::ranges::sort(sent);
  EXPECT_EQ(sent, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  std::ranges::sort(came.begin(), came.begin() + heads, {}, &Tail::bytes);  // the wire keeps no order of heads
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_TRUE(std::ranges::equal(ucx::Wire::look(came[i].place, came[i].bytes), tails[i])) << lengths[i];
    to->give_back(came[i].place);
  }
}

TEST_F(Tails, AreRefusedIfTheirLengthDiffersFromThatInTheHead) {
  const std::array<std::byte, 100> bytes{};
  send(bytes, 1, 101);
  send(bytes, 2, 99);
  send({}, 3, 100);
  send(bytes, 4, 100);

  ASSERT_TRUE(poll_until([&] { return heads == 1 && to->refused() == 3; }));

  to->give_back(came[0].place);
}

TEST_F(Tails, ReturnToTheirSenderIfThePeerHasGone) {
  const std::array<std::byte, 16384> bytes{};
  std::size_t accepted = 0;
  Head head = head_of(0, 0);
  head.kind = HeadKind{KindNumber<Protocol::message>::with_tail(2)};
  head.set(Tail{bytes.size(), 0});
  while (accepted < 16 && from->send(1, head, Lane::request, {bytes, accepted}) == Status::ok) ++accepted;
  ASSERT_GT(accepted, 0U);

  from->forget(1);

  EXPECT_TRUE(poll_until([&] { return sent.size() == accepted; }));
}

TEST_F(Ucx, IgnoresAProcessThatDoesNotKnowTheSecret) {
  constexpr std::array<std::byte, 32> other{std::byte{1}};
  auto settings = ucx_settings(2, 1);
  settings.secret = other;
  ucx::Wire mine(ucx_settings(2, 0));
  ucx::Wire stranger(settings);
  stranger.introduce(0, address_of(mine));
  mine.introduce(1, address_of(stranger));
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(stranger.send(0, head_of(1, i), Lane::request), Status::ok);

  std::size_t heads = 0;
  EXPECT_TRUE(repeat_until([&] {
    stranger.poll(16, ignore);
    mine.poll(16, [&](const Head&) noexcept { ++heads; });
    return mine.refused() == 3;
  }));

  EXPECT_EQ(heads, 0U);
}

TEST_F(Ucx, IgnoresARankThatClaimsToBeAnotherRank) {
  UcxWires wires(3);
  greet(wires);
  ASSERT_EQ(wires[1].send(0, head_of(2, 0), Lane::request), Status::ok);
  ASSERT_EQ(wires[1].send(0, head_of(3, 0), Lane::request), Status::ok);

  std::size_t heads = 0;
  EXPECT_TRUE(repeat_until([&] {
    wires[1].poll(16, ignore);
    wires[0].poll(16, [&](const Head&) noexcept { ++heads; });
    return wires[0].refused() == 2;
  }));

  EXPECT_EQ(heads, 0U);
}

TEST_F(Ucx, AShortSecretIsRefused) {
  constexpr std::array<std::byte, 8> few{};
  auto settings = ucx_settings(2, 1);
  settings.secret = few;

  EXPECT_THROW(ucx::Wire{settings}, SetupError);
}

TEST_F(Ucx, ASenderThatFloodsGetsAgainAndTakesNoMemory) {
  constexpr std::uint32_t most = 4'000'000;
  constexpr std::size_t enough = 1 << 20;
  UcxWires wires(2);
  greet(wires);
  std::uint32_t sent = 0;
  while (sent < most && wires[0].send(1, head_of(0, sent), Lane::request) == Status::ok) ++sent;
  ASSERT_LT(sent, most)
      << "the network takes memory without bound";  // the buffers of the system fill first, then the wire's own

  const std::size_t before = ::mallinfo2().uordblks;
  for (int i = 0; i < test::rounds(100'000); ++i) {
    wires[0].poll(16, ignore);
    if (wires[0].send(1, head_of(0, sent), Lane::request) == Status::ok) ++sent;
  }
  EXPECT_LT(::mallinfo2().uordblks, before + enough);
  EXPECT_EQ(wires[0].send(1, head_of(0, 0), Lane::reply), Status::ok) << "replies have separate room";

  std::size_t wrong = 0;
  std::uint32_t requests = 0;
  std::uint32_t replies = 0;
  EXPECT_TRUE(repeat_until([&] {
    wires[0].poll(16, ignore);
    wires[1].poll(16, [&](const Head& head) noexcept {
      if (replies == 0 && head.tag == requests) {
        ++requests;
      } else if (head.tag == 0 && requests == sent) {
        ++replies;
      } else {
        ++wrong;
      }
    });
    return requests == sent && replies == 1;
  }));
  EXPECT_EQ(wrong, 0U);
}

TEST_F(Ucx, EachHeadWakesASleepingRank) {
  const auto rounds = static_cast<std::uint32_t>(test::rounds(2000));
  UcxWires wires(2);
  greet(wires);
  std::atomic<std::uint32_t> taken{0};
  std::thread writer([&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      while (taken.load() != i) wires[1].poll(16, ignore);  // no head is left, so the reader may be about to sleep
      while (wires[1].send(0, head_of(1, i), Lane::request) != Status::ok) wires[1].poll(16, ignore);
    }
  });

  std::size_t sleeps = 0;
  bool woken = true;
  while (taken.load() < rounds && woken) {
    if (wires[0].poll(16, [&](const Head&) noexcept { taken.fetch_add(1); }) != 0) continue;
    if (!wires[0].arm()) continue;
    pollfd event{.fd = wires[0].event_descriptor(), .events = POLLIN, .revents = 0};
    woken = ::poll(&event, 1, 10'000) == 1;
    ++sleeps;
  }
  taken.store(rounds - 1);  // releases a writer whose head was lost
  writer.join();

  EXPECT_TRUE(woken) << "a wake-up was lost";
  EXPECT_GT(sleeps, 0U);
}

TEST_F(Ucx, LeavesNoDescriptorsOrThreadsBehind) {
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  for (int round = 0; round < 3; ++round) {
    UcxWires wires(3);
    greet(wires);
  }

  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
}

TEST_F(Ucx, HeadsAcceptedBeforeLeavingArrive) {
  UcxWires wires(2);
  greet(wires);
  constexpr std::uint32_t heads = 32;
  for (std::uint32_t i = 0; i < heads; ++i) ASSERT_EQ(wires[0].send(1, head_of(0, i), Lane::request), Status::ok);

  std::thread leaver([&] { wires.all[0].reset(); });

  std::uint32_t arrived = 0;
  EXPECT_TRUE(repeat_until([&] {
    wires[1].poll(16, [&](const Head&) noexcept { ++arrived; });
    return arrived == heads;
  }));
  leaver.join();
}

}  // namespace
}  // namespace tonari::fabric
