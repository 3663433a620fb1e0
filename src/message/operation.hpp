#pragma once

#include "fabric/engine.hpp"
#include "fabric/head.hpp"
#include "message/heads.hpp"
#include "message/looks.hpp"

#include <tonari/message.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tonari::message {

class Context;
class LayoutCursor;
class Schedule;

// The states of an operation. The holder of the progress lock makes the transitions along the upper arrows, under the
// runtime's lock. The *owning thread*, which waits for the operation or tests it, makes those along the lower arrows.
// Only the owning thread touches the user's memory.
//
//   send      held ---> announced ---> granted ---> copying
//               \            \            |           |
//                +------------+-----------+-----------+---> complete
//
//   receive   posted ---> matched ---> settled
//               |           |            |
//               +-----------+------------+---> complete
//
// held       there was no room yet: in the runtime's list of held sends
// announced  the receiver knows of the message; its payload is still in the user's buffer
// granted    the receive is posted: the owning thread must copy, together with the receiver
// copying    the owning thread copies or has copied
// posted     in the list of posted receives, or of probes
// matched    `head` has arrived: the owning thread takes the payload that it carries or names
// settled    the other side copied the last chunk
// doomed     replaces announced or matched if a third rank of the same collective died, or if the peer has left. The
//            owning thread ends the operation, unless the other side has begun to copy
enum class State : std::uint8_t { idle, held, announced, granted, copying, posted, matched, settled, doomed, complete };

/// Counts the changes of the operations of one wait.
struct Changes {
  std::atomic<std::uint64_t> count{0};  // under MessageRuntime::lock_; the waiting thread reads it without the lock
  fabric::Sleeper* sleeper = nullptr;   // woken at a change; under the lock

  void add() noexcept { count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_release); }
};

/// A send, receive, probe or collective that is under way.
///
/// Threads: three roles; one thread may have several at once. Each group of members says which role writes it, and
///          under which lock. "The lock" is MessageRuntime::lock_.
///
///            owning thread   waits for the operation or tests it; at first the thread that started it
///            launcher        sends the first head: the owning thread or, if the send was held, the holder
///            holder          holds the progress lock and handles the heads that arrive
///
/// Costs:   four cache lines. Only an announced payload uses the third, after the operation is made.
struct Operation {
  /// foreign: the code above completes it, see MessageRuntime::complete_foreign().
  enum class Kind : std::uint8_t { send, receive, probe, matched_probe, collective, foreign };

  /// The program's request. The owning thread writes it before another thread can find the operation; constant from
  /// then on. In the same way receive_matched() turns a matched probe into a receive.
  struct Call {
    Context* context;
    std::span<std::byte> buffer{};  // the user's; a send only reads it. Without an address if the data are `scattered`
    int peer = -1;                  // rank of the job, or -1 for any
    int tag = -1;                   // or -1 for any
    std::uint32_t context_id = 0;
    Kind kind;
    SendMode mode = SendMode::standard;
  };

  /// The state and the result.
  struct Progress {
    std::atomic<State> state{State::idle};  // written as State says
    State handled = State::idle;            // by the owning thread: the last state that it has acted on
    Status status = Status::ok;             // by the thread that settles or completes the operation, before it does so
    bool has_envelope = false;              // by the owning thread, at the end: `head` is the head of the message
  };

  /// Signals between the owning thread and the holder, without a lock.
  struct Signals {
    // Set by the owning thread: a hint that it waits until the operation is complete. Relaxed.
    std::atomic<bool> is_awaited{false};
    // Set by the holder after it adds a piece. Cleared by the owning thread before it takes the pieces.
    std::atomic<bool> has_pieces{false};
  };

  /// Only for sends.
  struct Sending {
    // Pieces of `buffer` that the network may still read. The owning thread adds, the thread that polls subtracts.
    std::atomic<std::uint32_t> network_reads{0};
    // Written by the launcher: false while the send is held, until its announcement is in the peer's ring.
    std::atomic<bool> launched{true};
    bool has_ticket = false;   // by the launcher; after the launch, under the lock
    bool holds_piece = false;  // by the owning thread: `head` is a piece that has found no room yet
    bool sent_late = false;    // by the owning thread: the payload has followed its announcement, see send_late()
  };

  /// The place in a list. Written under the lock in lists of posted receives and waiting probes, and under
  /// MessageRuntime::held_lock_ in the list of held sends.
  struct Links {
    Operation* next = nullptr;
    Operation* previous = nullptr;
    std::uint64_t number = 0;  // of a posted receive: its number in the order of posting
  };

  /// Where to tell that the state has changed. Written by the waiting thread, read by the holder, both under the lock.
  struct Waking {
    fabric::Sleeper* sleeper = nullptr;
    Changes* changes = nullptr;  // of a wait for several operations
  };

  /// Whether the owning thread must advance a stepwise or detached operation.
  enum class Due : std::uint8_t {
    no,
    now,      // it has changed
    blocked,  // it found no room, so it must be advanced again after the next poll
    always,   // a collective: its changes are not reported
  };

  /// The owning thread, see MessageRuntime::advance_stepwise(). A thread that advances a detached operation is its
  /// owning thread. Written under the lock.
  struct Owner {
    const void* thread = nullptr;    // its this_thread(); null if it waits for the operation from the start
    std::uint32_t place = 0;         // in an OperationSet
    Due due = Due::no;               // of a stepwise or detached operation: says in which set it is
    bool is_being_advanced = false;  // `thread` advances it now, but does not wait for it
    // Set at the start or, under the lock, when a message is matched or granted. Relaxed: the owning thread sees its
    // own changes, and other changes before the operation is complete.
    std::atomic<bool> is_stepwise{false};
  };

  /// An announced payload. The launcher of a send writes the ticket before the launch; the holder writes the terms
  /// under the lock, before `granted`. Both members of a receive are written under the lock, before `matched`.
  /// Constant from then on.
  struct Transfer {
    Ticket ticket{};
    Terms terms{};
    std::uint64_t next_offset = 0;  // by the owning thread: the place in the message of the next piece
  };

  // Deletes the parts that few operations have. It is out of line, so that the destructor of the others can be inline.
  struct Delete {
    [[gnu::cold]] void operator()(Schedule* owned) const noexcept;
    [[gnu::cold]] void operator()(LayoutCursor* owned) const noexcept;
  };

  Operation(Kind kind, Context& context) noexcept : call{.context = &context, .kind = kind} {}
  // Operations are made and destroyed at the rate of messages, so each thread keeps memory of destroyed ones for reuse.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  // First cache line: the call and its progress. `scattered` replaces the address in `call.buffer` if the data are in
  // several places; it is constant once the operation is started, and its contents belong to the owning thread.
  alignas(fabric::head_bytes) Call call;
  Progress progress;
  Signals signals;
  Sending sending;
  std::unique_ptr<LayoutCursor, Delete> scattered;

  // Second: lists and waits. `schedule`, of a collective, belongs to the owning thread.
  alignas(fabric::head_bytes) Links links;
  Waking waking;
  Owner owner;
  std::unique_ptr<Schedule, Delete> schedule;

  // Third: announced payloads. `pieces` of a receive have arrived and are not taken yet; under the lock.
  alignas(fabric::head_bytes) Transfer transfer;
  std::vector<Piece> pieces;

  // Fourth. A send: the head to send, written by the owning thread, by the launcher as far as it announces a payload.
  // Otherwise: the head that arrived, written under the lock before `matched`.
  fabric::Head head;

  /// Returns the result. Computed from `head` each time: reading the head is faster than reading a result that was just
  /// written in parts (store forwarding).
  [[nodiscard]] Result<Envelope> result() const noexcept;
  /// True if the owning thread would find something to do.
  [[nodiscard]] bool ready() const noexcept {
    operation_looks.add();
    const State now = progress.state.load(std::memory_order_acquire);  // pairs with become()
    if (now == State::complete) return true;
    if (call.kind == Kind::collective) [[unlikely]]
      return schedule_ready();
    return now != progress.handled || signals.has_pieces.load(std::memory_order_acquire);
  }

 private:
  [[nodiscard]] bool schedule_ready() const noexcept;
};
static_assert(sizeof(Operation) == 4 * fabric::head_bytes);

}  // namespace tonari::message
