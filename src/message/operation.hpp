#pragma once

#include "fabric/engine.hpp"
#include "fabric/head.hpp"

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

// The life of an operation. The holder of the progress lock moves it along the upper arrows, under the runtime's lock;
// the thread that waits for it (its asker) along the lower ones, and only the asker touches the user's memory.
//
//   send      held ---> announced ---> granted ---> copying         receive   posted ---> matched ---> settled
//               \            \            |           |                          |           |            |
//                +------------+-----------+-----------+---> complete             +-----------+------------+--->
//                complete
//
// held       no room yet: in the runtime's list of held sends
// announced  the receiver knows of it; the payload is still in the user's buffer
// granted    the receive is posted: the asker is to copy, together with the receiver
// copying    it does, or has
// posted     in the list of posted receives, or of probes
// matched    `head` is here: the asker takes what it carries
// settled    the other side copied the last chunk
// doomed     instead of announced or matched: in a collective of which a third rank has died, or for a rank that has
//            left. The asker ends it, unless the other side has begun to copy
enum class State : std::uint8_t { idle, held, announced, granted, copying, posted, matched, settled, doomed, complete };

struct Operation {
  enum class Kind : std::uint8_t { send, receive, probe, matched_probe, collective };

  Operation(Kind what, Context& in) noexcept;
  ~Operation();
  // They come and go at the rate of messages: each thread keeps some of the memory for its next ones.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* memory) noexcept;

  Kind kind;
  SendMode mode = SendMode::standard;
  std::atomic<State> state{State::idle};
  State seen = State::idle;                 // by the asker: the state it has acted on
  std::atomic<bool> waited{false};          // relaxed, to the holder: the asker stays until this is complete
  std::atomic<bool> piece_waiting{false};   // set by the holder behind a piece, cleared by the asker before taking
  std::atomic<std::uint32_t> under_way{0};  // pieces of `buffer` that the network may still read
  std::atomic<bool> launched{true};         // false from when it is held until its announcement is in the peer's ring
  bool has_ticket = false;                  // by whoever launches it; once it is, under the runtime's lock
  bool closing = false;                     // a send whose `finish` head is held
  bool prepared = false;                    // a piece in `head` found no room
  bool followed = false;                    // the payload went after its announcement: see Runtime::send_late
  bool tended = false;                      // from start to end: see Runtime::tend
  bool busy = false;                        // under the runtime's lock: being tended
  const void* asker = nullptr;              // under the runtime's lock, if tended: the thread

  Context* context;
  std::byte* buffer = nullptr;  // the user's; for a send it is only read
  std::size_t bytes = 0;        // of the buffer
  int peer = -1;                // rank of the job, or -1: any
  int tag = -1;                 // or -1: any
  std::uint32_t context_id = 0;

  std::uint32_t ticket = 0;  // of an announced payload
  std::uint32_t generation = 0;
  std::uint64_t moved = 0;     // by the asker: bytes sent or taken in pieces
  fabric::Grant grant{};       // send, from granted on
  Status status = Status::ok;  // by who completes it
  bool met = false;            // by the asker, at the end: `head` is that of the message

  std::uint64_t number = 0;   // of a posted receive: in order of posting
  Operation* next = nullptr;  // in the list that `state` names; under the runtime's lock
  Operation* previous = nullptr;
  fabric::Sleeper* sleeper = nullptr;             // under the runtime's lock: whom to wake on a change
  std::atomic<std::uint64_t>* changes = nullptr;  // under the runtime's lock: counts those of all that one wait is for

  std::vector<fabric::Piece> pieces;     // under the runtime's lock
  std::unique_ptr<Schedule> schedule;    // of a collective
  std::unique_ptr<Scattered> scattered;  // instead of `buffer`, when the user's data lie in several places
  fabric::Head head;                     // send: to go; receive: as arrived

  /// How it ended. Made from `head` each time, which is sooner read than a copy that was just written in parts.
  [[nodiscard]] Result<Envelope> result() const noexcept;
  /// Its asker would find something to do.
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

/// A list through the operations' own links. Not synchronised.
class OperationList {
 public:
  [[nodiscard]] Operation* front() const noexcept { return front_; }
  void push_back(Operation& operation) noexcept {
    operation.next = nullptr;
    operation.previous = back_;
    (back_ != nullptr ? back_->next : front_) = &operation;
    back_ = &operation;
  }
  /// Puts it behind `place`, or in front of all when null.
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
