#pragma once

#include "random.hpp"
#include "require.hpp"

#include <tonari/message.hpp>

#include <array>

// Sends messages between two ranks, in every size and in every manner.
namespace tonari::test {

/// Sizes at and around every limit between two protocols, and a few others.
inline constexpr std::array<std::size_t, 25> sizes{0,     1,     8,     40,    41,    48,     49,     255,   256,
                                                   257,   1000,  1025,  4096,  4097,  8191,   8192,   12287, 12288,
                                                   16384, 16385, 24576, 24577, 65536, 262145, 2000001};

/// The manner of an exchange: the calls that the two sides use.
struct Manner {
  SendMode mode;
  bool started;  ///< The send.
  bool posted;   ///< The receive is posted before the message is sent; otherwise the message is there first.
};
inline constexpr std::array manners{
    Manner{SendMode::standard, false, true},     Manner{SendMode::standard, true, true},
    Manner{SendMode::standard, false, false},    Manner{SendMode::standard, true, false},
    Manner{SendMode::when_posted, false, true},  Manner{SendMode::when_posted, true, true},
    Manner{SendMode::when_posted, false, false}, Manner{SendMode::when_posted, true, false},
};
inline constexpr int ready_tag = 100;

inline void send_one(Communicator& world, int to, const Manner& manner, std::size_t bytes, int tag) {
  auto sent = pattern(bytes, bytes);
  if (manner.posted) require_ok(world.receive(std::span<int>(), Rank{to}, Tag{ready_tag}).status);
  if (manner.started) {
    Request request = world.start_send(sent, Rank{to}, Tag{tag}, manner.mode);
    require_ok(request.wait().status);
    require(request.complete(), "it is not complete after wait()");
  } else {
    require_ok(world.send(sent, Rank{to}, Tag{tag}, manner.mode));
  }
  std::ranges::fill(sent, std::byte{0xee});  // the buffer may be reused, and the message must not change any more
}

inline void receive_one(Communicator& world, int from, const Manner& manner, std::size_t bytes, int tag) {
  std::vector<std::byte> received(bytes);
  Result<Envelope> result;
  if (manner.posted) {
    Request request = world.start_receive(received, Rank{from}, Tag{tag});
    require_ok(world.send(std::span<const int>(), Rank{from}, Tag{ready_tag}));
    result = request.wait();
  } else {
    const Result<Envelope> found = world.probe(Rank{from}, Tag{tag});
    require_ok(found.status);
    require(found.value.bytes == bytes, "the probe saw another length");
    result = world.receive(received, Rank{from}, Tag{tag});
  }
  require_ok(result.status);
  require(result.value.source == from && result.value.tag == tag, "it came from another rank or with another tag");
  require(result.value.bytes == bytes, "another length came");
  require(received == pattern(bytes, bytes), std::to_string(bytes) + " bytes arrived changed");
}

/// Sends every size in every manner from rank `from` to rank `to`.
inline void exchange_all(Communicator& world, int from, int to) {
  for (const Manner& manner : manners) {
    for (const std::size_t bytes : sizes) {
      const int tag = static_cast<int>(&manner - manners.data());
      if (world.rank() == from) send_one(world, to, manner, bytes, tag);
      if (world.rank() == to) receive_one(world, from, manner, bytes, tag);
    }
  }
}

}  // namespace tonari::test
