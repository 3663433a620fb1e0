#pragma once

#include "fabric/engine.hpp"
#include "fabric/head.hpp"
#include "message/heads.hpp"

#include <tonari/message.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tonari::message {

class Context;
class Schedule;
class Scattered;

// The states of an operation. The holder of the progress lock makes the transitions along the upper arrows, under the
// runtime's lock. The thread that waits for the operation (its *asker*) makes those along the lower arrows. Only the
// asker touches the user's memory.
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
// granted    the receive is posted: the asker must copy, together with the receiver
// copying    the asker copies or has copied
// posted     in the list of posted receives, or of probes
// matched    `head` has arrived: the asker takes the payload that it carries or names
// settled    the other side copied the last chunk
// doomed     replaces announced or matched if a third rank of the same collective died, or if the peer has left. The
//            asker ends the operation, unless the other side has begun to copy
enum class State : std::uint8_t { idle, held, announced, granted, copying, posted, matched, settled, doomed, complete };

struct Operation {
  enum class Kind : std::uint8_t { send, receive, probe, matched_probe, collective };

  Operation(Kind what, Context& in) noexcept;
  ~Operation();
  // Operations are made and destroyed at the rate of messages, so each thread keeps memory of destroyed ones for reuse.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  Kind kind;
  SendMode mode = SendMode::standard;
  std::atomic<State> state{State::idle};
  State seen = State::idle;  // written by the asker: the last state that it has acted on
  std::atomic<bool> waited{
      false};  // relaxed; a hint to the progress lock's holder that the asker waits until this operation is complete
  std::atomic<bool> piece_waiting{
      false};  // set by the holder after it adds a piece, cleared by the asker before it takes pieces
  std::atomic<std::uint32_t> under_way{0};  // pieces of `buffer` that the network may still read
  std::atomic<bool> launched{true};         // false while it is held, until its announcement is in the peer's ring
  bool has_ticket = false;      // written by the launching thread; after the launch, under the runtime's lock
  bool closing = false;         // a send whose `finish` head is to be sent
  bool prepared = false;        // `head` holds a piece that found no room
  bool followed = false;        // the payload followed its announcement: see MessageRuntime::send_late
  bool tended = false;          // constant: see MessageRuntime::tend
  bool busy = false;            // under the runtime's lock: being tended
  const void* asker = nullptr;  // under the runtime's lock, if tended: the thread that waits for it

  Context* context;
  std::byte* buffer = nullptr;  // the user's buffer; only read if this is a send
  std::size_t bytes = 0;        // size of the buffer
  int peer = -1;                // rank of the job, or -1 for any
  int tag = -1;                 // -1 for any
  std::uint32_t context_id = 0;

  Ticket ticket{};             // of an announced payload
  Terms terms{};               // of an announced payload; of a send: valid from `granted` on
  std::uint64_t moved = 0;     // used by the asker: bytes sent or received in pieces
  Status status = Status::ok;  // written by the thread that completes it
  bool met = false;            // written by the asker at the end: true if `head` belongs to the message

  std::uint64_t number = 0;   // of a posted receive: number in the order of posting
  Operation* next = nullptr;  // link in the list of its state; under the runtime's lock
  Operation* previous = nullptr;
  fabric::Sleeper* sleeper = nullptr;  // under the runtime's lock: woken on a change
  std::atomic<std::uint64_t>* changes =
      nullptr;  // under the runtime's lock: counts the changes of all operations of one wait

  std::vector<Piece> pieces;             // under the runtime's lock
  std::unique_ptr<Schedule> schedule;    // of a collective
  std::unique_ptr<Scattered> scattered;  // instead of `buffer`, if the user's data are in several places
  fabric::Head head;                     // send: the head to send; receive: the head that arrived

  /// Returns the result. Computed from `head` each time: reading the head is faster than reading a result that was just
  /// written in parts (store forwarding).
  [[nodiscard]] Result<Envelope> result() const noexcept;
  /// True if the asker would find something to do.
  [[nodiscard]] bool ready() const noexcept {
    const State now = state.load(std::memory_order_acquire);  // pairs with become()
    if (now == State::complete) return true;
    if (kind == Kind::collective) [[unlikely]]
      return schedule_ready();
    return now != seen || piece_waiting.load(std::memory_order_acquire);
  }

 private:
  [[nodiscard]] bool schedule_ready() const noexcept;
};

/// A list linked through the operations themselves. Not synchronised.
class OperationList {
 public:
  [[nodiscard]] Operation* front() const noexcept { return front_; }
  void push_back(Operation& operation) noexcept {
    operation.next = nullptr;
    operation.previous = back_;
    (back_ != nullptr ? back_->next : front_) = &operation;
    back_ = &operation;
  }
  /// Inserts the operation after `place`, or at the front if `place` is null.
  void insert_after(Operation* place, Operation& operation) noexcept {
    operation.previous = place;
    operation.next = place != nullptr ? place->next : front_;
    (operation.next != nullptr ? operation.next->previous : back_) = &operation;
    (place != nullptr ? place->next : front_) = &operation;
  }
  void remove(Operation& operation) noexcept {
    (operation.previous != nullptr ? operation.previous->next : front_) = operation.next;
    (operation.next != nullptr ? operation.next->previous : back_) = operation.previous;
    operation.next = operation.previous = nullptr;
  }

 private:
  Operation* front_ = nullptr;
  Operation* back_ = nullptr;
};

}  // namespace tonari::message
