#include "../support/require.hpp"
#include "../support/windows.hpp"

#include "fabric/engine.hpp"
#include "window/local/assisted_copy.hpp"

#include <algorithm>

// Tests assisted copies, in which the owner of a part helps, and freeing a part while other ranks use other parts.
namespace tonari {
namespace {

using fabric::Engine;
using fabric::Tickets;
using window::Service;

constexpr std::size_t part_bytes = 100'000;
constexpr std::uint64_t chunk_bytes = 16'384;

/// Offers rank 1 a transfer of its whole part. This rank copies no chunk itself.
Tickets::Ticket offer(Engine& engine, const Window& window, Service service, std::span<std::byte> own) {
  const auto ticket = engine.tickets().take();
  test::require(ticket.has_value(), "no ticket");
  fabric::Head head;
  head.kind = window::Kind::window_help;
  head.inline_bytes = sizeof(window::HelpRequest);
  head.source = 0;
  head.context = window.number();
  head.set(window::HelpRequest{0,
                               reinterpret_cast<std::uint64_t>(own.data()),
                               own.size(),
                               chunk_bytes,
                               ticket->index,
                               ticket->generation,
                               service,
                               {}});
  test::require_ok(engine.send(1, head, fabric::Lane::request));
  return *ticket;
}

TEST(AssistedCopy, OwnerCopiesUnclaimedChunksButNoneThatItsRightsForbid) {
  test::as_jobs(2, [](Job& job) {
    Engine& engine = Engine::of(job.session());
    std::vector<std::byte> memory(part_bytes);
    std::vector<std::byte> closed_memory(part_bytes);
    Window window(job, std::span(memory));
    Window closed(job, std::span(closed_memory), {.rights = Rights::read});
    const auto sent = test::pattern(part_bytes, 1);
    const std::uint32_t chunks = fabric::chunks_of(part_bytes, chunk_bytes);
    if (job.rank() == 0) {
      auto own = sent;
      std::vector<std::byte> got(part_bytes);
      const auto refused = offer(engine, closed, Service::push, own);
      for (const auto& [service, buffer] :
           {std::pair(Service::push, std::span(own)), {Service::pull, std::span(got)}}) {
        const auto ticket = offer(engine, window, service, buffer);
        fabric::TransferMemory& transfer = engine.transfer_of(0, ticket.index);
        while (transfer.done.load(std::memory_order_acquire) < chunks) std::this_thread::yield();
        EXPECT_EQ(transfer.outcome(), Status::ok);
        engine.tickets().give_back(ticket.index);
      }
      EXPECT_TRUE(got == sent);
      EXPECT_EQ(engine.transfer_of(0, refused.index).take_chunk(refused.generation, chunks), 0U)
          << "the owner claimed a chunk of a transfer that its rights forbid";
      engine.tickets().give_back(refused.index);
      ASSERT_EQ(window.push_notified(window.at(JobRank{1}), {}, 0), Status::ok);
    } else {
      while (window.notified(0) == 0) engine.progress();
      EXPECT_TRUE(memory == sent);
      EXPECT_TRUE(std::ranges::all_of(closed_memory, [](std::byte each) { return each == std::byte{0}; }));
    }
    EXPECT_EQ(window.barrier(), Status::ok);
  });
}

TEST(WindowPart, FreeingItDoesNotWaitForAccessesToOtherParts) {
  std::atomic<bool> freed{false};
  test::as_jobs(3, [&freed](Job& job) {
    Communicator world(job);
    std::vector<std::byte> memory(part_bytes);
    std::optional<Window> window(std::in_place, job, std::span(memory));
    ASSERT_EQ(world.barrier(), Status::ok);
    if (job.rank() == 0) {  // until rank 1 has freed its part, at least one push is under way at any time
      constexpr std::size_t each = part_bytes / 4;
      test::in_threads(4, [&](int number) {
        const std::vector<std::byte> sent(each);
        do {
          EXPECT_EQ(window->push(window->at(JobRank{2}, static_cast<std::size_t>(number) * each), sent), Status::ok);
        } while (!freed.load());
      });
    } else if (job.rank() == 1) {
      window.reset();
      freed.store(true);
    }
    ASSERT_EQ(world.barrier(), Status::ok);
  });
}

}  // namespace
}  // namespace tonari
