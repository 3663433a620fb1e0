#include "../support/ranks.hpp"
#include "fabric/requests.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace tonari::fabric {
namespace {

enum class TestKind : std::uint8_t {
  question = KindNumber<Protocol::share>::plain(0),
  answer = KindNumber<Protocol::share>::plain(1),
  other = KindNumber<Protocol::share>::plain(2),
};

struct Question final : PendingRequest {
  bool accepts(HeadKind asked_for, const Head& reply) const noexcept override {
    return asked_for == TestKind::question && reply.kind == TestKind::answer;
  }
  void answered() noexcept override { ++answers; }
  int answers = 0;
};

/// Keeps the requests that arrive.
class Recorder final : public ProtocolHandler {
 public:
  void receive(std::span<const Head> heads) noexcept override {
    arrived.insert(arrived.end(), heads.begin(), heads.end());
  }
  void retry() noexcept override {}
  [[nodiscard]] bool held_back() const noexcept override { return false; }
  void idle() noexcept override {}
  void died(int) noexcept override {}
  void left(int) noexcept override {}

  std::vector<Head> arrived;
};

Head question() {
  Head head{};
  head.kind = TestKind::question;
  head.inline_bytes = inline_bytes_max;
  return head;
}

/// One rank that asks itself.
struct Asking {
  explicit Asking(Job& job)
      : engine(Engine::of(job.session())),
        recorder(engine.handlers().get<Recorder>(Protocol::share, [] { return std::make_unique<Recorder>(); })),
        requests(engine) {}

  /// Asks, and returns the reply that would be right.
  Head ask(Question& pending, std::uint32_t tag = 0) {
    requests.ask(pending, 0, question());
    engine.progress();
    Head reply = recorder.arrived.back();
    recorder.arrived.clear();
    reply.kind = TestKind::answer;
    reply.tag = tag;
    return reply;
  }

  Engine& engine;
  Recorder& recorder;
  Requests requests;
};

/// Without a service thread: progress() alone receives what arrives, not another thread before it or during it.
void with_requests(void (*body)(Asking&)) {
  const auto rank = [body](Job& job) {
    Asking asking(job);
    body(asking);
  };
  run_as_threads(1, rank, {"TONARI_SERVICE_THREAD=off"});
}

Tickets::Ticket ticket_of(const Head& head) {
  Tickets::Ticket ticket;
  std::memcpy(&ticket, head.payload.data() + ticket_at, sizeof ticket);
  return ticket;
}

void set_ticket(Head& head, Tickets::Ticket ticket) {
  std::memcpy(head.payload.data() + ticket_at, &ticket, sizeof ticket);
}

TEST(FabricRequests, EndWithTheReplyThatCarriesTheirTicket) {
  with_requests([](Asking& asking) {
    Question first;
    Question second;
    const Head to_first = asking.ask(first, 1);
    const Head to_second = asking.ask(second, 2);
    EXPECT_FALSE(first.is_done());

    asking.requests.receive(to_second);
    EXPECT_FALSE(first.is_done());
    ASSERT_TRUE(second.is_done());
    asking.requests.receive(to_first);

    asking.requests.wait(first);
    EXPECT_EQ(first.status(), Status::ok);
    EXPECT_EQ(first.reply().tag, 1U);
    EXPECT_EQ(second.reply().tag, 2U);
    EXPECT_EQ(first.answers + second.answers, 2);
  });
}

TEST(FabricRequests, DropRepliesThatAreForged) {
  with_requests([](Asking& asking) {
    Question pending;
    const Head right = asking.ask(pending);

    Head of_another_kind = right;
    of_another_kind.kind = TestKind::other;
    Head from_another_rank = right;
    from_another_rank.source = 1;
    Head of_an_earlier_ticket = right;
    set_ticket(of_an_earlier_ticket, {ticket_of(right).index, ticket_of(right).generation - 1});
    Head of_no_ticket = right;
    set_ticket(of_no_ticket, {static_cast<std::uint32_t>(tickets_max), ticket_of(right).generation});
    Head of_an_unused_ticket = right;
    set_ticket(of_an_unused_ticket, {(ticket_of(right).index + 1) % static_cast<std::uint32_t>(tickets_max), 0});
    for (const Head& forged :
         {of_another_kind, from_another_rank, of_an_earlier_ticket, of_no_ticket, of_an_unused_ticket}) {
      asking.requests.receive(forged);
      EXPECT_FALSE(pending.is_done());
    }

    asking.requests.receive(right);
    EXPECT_TRUE(pending.is_done());
    asking.requests.receive(right);  // a second time
    EXPECT_EQ(pending.answers, 1);
  });
}

TEST(FabricRequests, EndWhenTheirRankIsGone) {
  with_requests([](Asking& asking) {
    Question pending;
    const Head late = asking.ask(pending);
    asking.requests.end_requests_to(1);
    EXPECT_FALSE(pending.is_done());

    asking.requests.end_requests_to(0);
    asking.requests.receive(late);

    ASSERT_TRUE(pending.is_done());
    EXPECT_EQ(pending.status(), Status::peer_gone);
    EXPECT_EQ(pending.answers, 1);
    EXPECT_TRUE(asking.requests.tail_of(pending).empty());
  });
}

TEST(FabricRequests, CanBeGivenUpUntilTheirReplyHasCome) {
  with_requests([](Asking& asking) {
    Question given_up;
    const Head late = asking.ask(given_up);
    EXPECT_TRUE(asking.requests.abandon(given_up));
    asking.requests.receive(late);
    EXPECT_EQ(given_up.answers, 0);

    Question answered;
    asking.requests.receive(asking.ask(answered));
    EXPECT_FALSE(asking.requests.abandon(answered));
    EXPECT_EQ(answered.status(), Status::ok);
  });
}

TEST(FabricRequests, GiveTheirTicketsBack) {
  with_requests([](Asking& asking) {
    Question pending;
    for (std::size_t i = 0; i < 3 * tickets_max; ++i) {
      const Head reply = asking.ask(pending, static_cast<std::uint32_t>(i));
      if (i % 3 == 0) {
        asking.requests.receive(reply);
      } else if (i % 3 == 1) {
        asking.requests.end_requests_to(0);
      } else {
        EXPECT_TRUE(asking.requests.abandon(pending));
      }
      ASSERT_TRUE(pending.is_done());
    }
  });
}

TEST(FabricRequests, LeaveAsManyTicketsAsTheyAreToldToSpare) {
  constexpr unsigned spare = 2;
  with_requests([](Asking& asking) {
    std::vector<std::unique_ptr<Question>> all;
    do {
      all.push_back(std::make_unique<Question>());
      asking.engine.progress();
    } while (asking.requests.try_ask(*all.back(), 0, question(), spare));
    EXPECT_EQ(all.size() - 1, tickets_max - spare);

    Question with_a_spared_ticket;
    EXPECT_TRUE(asking.requests.try_ask(with_a_spared_ticket, 0, question()));
    asking.requests.end_requests_to(0);
    for (const auto& each : all) EXPECT_TRUE(each->is_done());
  });
}

}  // namespace
}  // namespace tonari::fabric
