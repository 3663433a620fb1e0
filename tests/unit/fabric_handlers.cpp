#include "../support/ranks.hpp"
#include "fabric/handlers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tonari::fabric {
namespace {

class Recorder final : public ProtocolHandler {
 public:
  explicit Recorder(Handlers& handlers) : held(handlers) {}

  void receive(std::span<const Head> heads) noexcept override {
    for (const Head& head : heads) tags.push_back(head.tag);
  }
  void retry() noexcept override {
    ++retries;
    held.set(0);
  }
  [[nodiscard]] bool held_back() const noexcept override {
    ++questions;
    return !held.is_zero();
  }
  void idle() noexcept override {}
  void died(int rank) noexcept override { dead.push_back(rank); }
  void left(int rank) noexcept override { gone.push_back(rank); }
  void run_deferred_work() noexcept override { ++runs; }

  HeldBack held;
  std::vector<std::uint32_t> tags;
  std::vector<int> dead, gone;
  int retries = 0, runs = 0;
  mutable int questions = 0;
};

Recorder& recorder_of(Handlers& handlers, Protocol protocol) {
  return handlers.get<Recorder>(protocol, [&] { return std::make_unique<Recorder>(handlers); });
}

Head head_of(Protocol protocol, std::uint32_t tag) {
  Head head{};
  head.kind = HeadKind(static_cast<std::uint8_t>(static_cast<unsigned>(protocol) << 6));
  head.tag = tag;
  return head;
}

void with_handlers(void (*body)(Handlers&)) {
  run_as_threads(1, [body](Job& job) {
    Handlers handlers(job.session());
    body(handlers);
  });
}

std::vector<std::uint32_t> hand_up(Handlers& handlers, std::span<const Head> heads) {
  std::vector<std::uint32_t> own;
  handlers.hand_up(heads, [&own](const Head& head) { own.push_back(head.tag); });
  return own;
}

using Tags = std::vector<std::uint32_t>;

TEST(Handlers, GetTheHeadsOfTheirProtocolsInOrder) {
  with_handlers([](Handlers& handlers) {
    Recorder& message = recorder_of(handlers, Protocol::message);
    Recorder& share = recorder_of(handlers, Protocol::share);

    const std::array heads{head_of(Protocol::message, 1), head_of(Protocol::message, 2), head_of(Protocol::fabric, 3),
                           head_of(Protocol::share, 4), head_of(Protocol::message, 5)};
    const Tags own = hand_up(handlers, heads);

    EXPECT_EQ(message.tags, (Tags{1, 2, 5}));
    EXPECT_EQ(own, Tags{3});
    EXPECT_EQ(share.tags, Tags{4});
  });
}

TEST(Handlers, GetHeadsThatArrivedBeforeTheyWereRegisteredFirst) {
  with_handlers([](Handlers& handlers) {
    const std::array early{head_of(Protocol::window, 1), head_of(Protocol::window, 2)};
    const std::array late{head_of(Protocol::window, 3)};
    (void)hand_up(handlers, early);
    handlers.deliver_undelivered();  // there is no handler yet

    Recorder& window = recorder_of(handlers, Protocol::window);
    (void)hand_up(handlers, late);
    EXPECT_EQ(window.tags, Tags{});
    handlers.deliver_undelivered();

    EXPECT_EQ(window.tags, (Tags{1, 2, 3}));
  });
}

TEST(Handlers, HearOfDeathsAndDeparturesBeforeTheirRegistrationToo) {
  with_handlers([](Handlers& handlers) {
    Recorder& early = recorder_of(handlers, Protocol::message);
    handlers.tell(7, &ProtocolHandler::died);
    handlers.tell(8, &ProtocolHandler::left);
    Recorder& late = recorder_of(handlers, Protocol::share);

    for (const Recorder* each : {&early, &late}) {
      EXPECT_EQ(each->dead, std::vector{7});
      EXPECT_EQ(each->gone, std::vector{8});
    }
  });
}

TEST(Handlers, AreAskedForRetriesOnlyWhileSomethingIsHeldBack) {
  with_handlers([](Handlers& handlers) {
    Recorder& message = recorder_of(handlers, Protocol::message);
    Recorder& share = recorder_of(handlers, Protocol::share);
    handlers.retry();
    EXPECT_EQ(message.questions + share.questions, 0);

    share.held.add(2);
    EXPECT_TRUE(handlers.held_back());
    handlers.retry();
    EXPECT_EQ(message.retries, 0);
    EXPECT_EQ(share.retries, 1);

    const int questions = share.questions;
    handlers.retry();
    EXPECT_EQ(share.questions, questions);
    EXPECT_FALSE(handlers.held_back());
  });
}

TEST(Handlers, RunDeferredWorkUntilItIsFinished) {
  with_handlers([](Handlers& handlers) {
    Recorder& window = recorder_of(handlers, Protocol::window);
    handlers.run_deferred_work();
    EXPECT_EQ(window.runs, 0);

    handlers.add_deferred_work();
    handlers.run_deferred_work();
    EXPECT_EQ(window.runs, 1);

    handlers.finish_deferred_work();
    handlers.run_deferred_work();
    EXPECT_EQ(window.runs, 1);
  });
}

}  // namespace
}  // namespace tonari::fabric
