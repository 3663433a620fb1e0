#pragma once

#include "message/layout_cursor.hpp"

#include <tonari/message.hpp>

#include <cstddef>
#include <forward_list>
#include <memory>
#include <span>
#include <vector>

namespace tonari::message {

/// A collective as recorded for one rank: rounds of messages that travel concurrently, each followed by local work.
/// Recording neither needs a job nor touches the data. Schedule executes the rounds by the messages of a job; a
/// simulation can execute the rounds of any rank of any number of ranks.
///
/// Owns:    copies of the cursors, and the memory of scratch().
/// Threads: one at a time.
class Rounds {
 public:
  struct Message {
    std::byte* bytes;
    std::size_t count;
    int peer;
    bool is_send;
    const LayoutCursor* scattered = nullptr;  // if set, its data replace `bytes`
  };
  struct Local {
    std::byte* into;
    const std::byte* from;
    std::size_t bytes;
    detail::Reduction reduction;             // a copy if it has no fold
    LayoutCursor* scattered_into = nullptr;  // if set, a copy between these two
    LayoutCursor* scattered_from = nullptr;
  };
  struct Round {
    std::vector<Message> messages;
    std::vector<Local> meanwhile;  // while the messages are under way
    std::vector<Local> locals;     // after them
  };

  // Recording: all calls add to the last round. Peers are ranks of the communicator; see Context for the members of an
  // inter-communicator. They throw std::bad_alloc.
  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);
  /// The same with data in several places. The rounds keep a copy of the cursor.
  void send(const LayoutCursor& data, int to);
  void receive(const LayoutCursor& data, int from);
  /// Adds a step after the round's messages, in the order of recording: reduction.fold(into, from).
  void fold(std::span<std::byte> into, std::span<const std::byte> from, detail::Reduction reduction);
  /// Adds a step of the same kind: into = from.
  void copy(std::span<std::byte> into, std::span<const std::byte> from);
  /// The same between layouts, which must not overlap. If one is longer, its rest is left as it is.
  void copy(const LayoutCursor& into, const LayoutCursor& from);
  /// Adds a copy that is made while the round's messages are under way, which must not change its data.
  void copy_meanwhile(const LayoutCursor& into, const LayoutCursor& from);
  void next_round() { rounds_.emplace_back(); }
  /// Allocates memory that lives as long as the rounds.
  std::span<std::byte> scratch(std::size_t bytes);

  [[nodiscard]] const std::vector<Round>& rounds() const noexcept { return rounds_; }

 private:
  LayoutCursor& keep(const LayoutCursor& data);
  [[nodiscard]] Local copy_of(const LayoutCursor& into, const LayoutCursor& from);

  std::vector<Round> rounds_{1};
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::forward_list<LayoutCursor> layouts_;
};

}  // namespace tonari::message
