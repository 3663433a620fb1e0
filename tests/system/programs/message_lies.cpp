// Wrong addresses from a peer: rank 1 announces payloads at addresses that are not mapped, and grants rank 0 buffers at
// such addresses. Rank 0 gets bad_address, and later messages arrive. This works between processes only, because the
// kernel reports the bad address.
#include "../../support/exchange.hpp"

#include "fabric/engine.hpp"
#include "message/heads.hpp"

#include <tonari/tonari.hpp>

#include <array>
#include <cstdio>
#include <exception>

namespace {

using namespace tonari;
using fabric::Head;
using message::Kind;

constexpr int tag = 7;
constexpr int go_tag = 8;
// But 0, which says that the sender itself will write, and the last, which says that it will send pieces.
constexpr std::array<std::uint64_t, 5> nowhere{1, 4096, 0x7fff'ffff'f000, 0xffff'8000'0000'0000, ~std::uint64_t{1}};

void tell(fabric::Engine& engine, Kind kind, const auto& what, fabric::Lane lane) {
  Head head;
  head.kind = kind;
  head.source = 1;
  head.context = 0;  // the communicator of all
  head.tag = tag;
  head.set(what);
  while (engine.send(0, head, lane) == Status::again) engine.progress();
}

void expect_bad_address(Status status, std::uint64_t address) {
  test::require(status == Status::bad_address,
                "a transfer at address " + std::to_string(address) + " returned " + std::string(to_string(status)));
}

// With a ticket whose chunks rank 0 claims, and with one that is a name alone.
void announce(Job& job, Communicator& world, std::uint64_t address, bool shared) {
  constexpr std::uint64_t bytes = 300'000;
  if (world.rank() == 1) {
    fabric::Engine& engine = fabric::Engine::of(job.session());
    const auto taken = engine.tickets().take();
    test::require(taken.has_value(), "a ticket");
    const auto ticket = shared ? *taken : fabric::Tickets::Ticket{5000, 1};
    tell(engine, Kind::message_announced, message::Announced{bytes, address, ticket.index, ticket.generation},
         fabric::Lane::request);
    test::require_ok(world.receive(std::span<int>(), Rank{0}, Tag{go_tag}).status);
    engine.tickets().give_back(taken->index);
  } else {
    std::vector<std::byte> buffer(bytes);
    expect_bad_address(world.receive(buffer, Rank{1}, Tag{tag}).status, address);
    test::require_ok(world.send(std::span<const int>(), Rank{1}, Tag{go_tag}));
  }
}

// Rank 0's first announcement took its first ticket, and later ones take it again: that is how rank 1 knows its name.
void grant(Job& job, Communicator& world, std::uint64_t address, std::uint32_t generation) {
  constexpr std::uint64_t bytes = 300'000;
  if (world.rank() == 1) {
    test::require_ok(world.probe(Rank{0}, Tag{tag}).status);
    tell(fabric::Engine::of(job.session()), Kind::grant,
         message::Grant{0, generation, address, bytes, message::Road::direct, 1 << 18}, fabric::Lane::reply);
    test::require_ok(world.receive(std::span<int>(), Rank{0}, Tag{go_tag}).status);
  } else {
    const std::vector<std::byte> buffer(bytes);
    expect_bad_address(world.send(buffer, Rank{1}, Tag{tag}), address);
    test::require_ok(world.send(std::span<const int>(), Rank{1}, Tag{go_tag}));
  }
}

}  // namespace

int main() {
  try {
    Job job;
    Communicator world(job);
    std::uint32_t generation = 0;
    for (const std::uint64_t address : nowhere) grant(job, world, address, ++generation);
    for (const std::uint64_t address : nowhere) {
      for (const bool shared : {true, false}) announce(job, world, address, shared);
    }
    test::exchange_all(world, 0, 1);
    test::exchange_all(world, 1, 0);
    std::printf("rank %d did it\n", world.rank().value());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
