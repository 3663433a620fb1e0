#pragma once

#include "base/lock.hpp"
#include "fabric/engine.hpp"
#include "message/context.hpp"
#include "message/detached.hpp"
#include "message/host_collectives.hpp"
#include "message/incoming.hpp"
#include "message/looks.hpp"
#include "message/operation.hpp"
#include "message/operation_list.hpp"
#include "message/posted.hpp"
#include "message/stepwise.hpp"
#include "message/tickets.hpp"
#include "message/unexpected.hpp"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace tonari::message {

/// Returns a pointer that identifies the calling thread, unique as long as it lives.
inline const void* this_thread() noexcept {
  static thread_local const char mark = 0;
  return &mark;
}

/// True if the head is a user's message or announces one.
constexpr bool is_message(const fabric::Head& head) noexcept {
  return head.kind == Kind::message_inline || head.kind == Kind::message_bulk || head.kind == Kind::message_announced;
}

/// The messages of one rank. Chooses the way of each send, interprets the heads that arrive, and does the owning
/// thread's share of copying.
///
///   at most `split` bytes     message_inline: in the head
///   below `direct_bytes`      message_bulk: through the sender's bulk memory. If that is full, the message is
///                             announced. Its payload follows when there is room, unless its receive is posted first
///   longer, or the receiver's message_announced: the payload stays in the user's buffer until the receive is posted.
///   limit is reached, or      Then both sides copy it once, sharing the work
///   when_posted
///
/// Threads: any. `lock_` protects the queues and the links of every operation. User memory is never touched under it;
///          the payload of an unexpected message is copied under it.
class MessageRuntime final : public fabric::ProtocolHandler {
 public:
  explicit MessageRuntime(fabric::Engine& engine);
  ~MessageRuntime() override;
  /// Returns the session's message runtime, made on first use.
  static MessageRuntime& of(job::Session& session);

  [[nodiscard]] fabric::Engine& engine() const noexcept { return engine_; }
  /// Returns the context of the communicator of all ranks.
  [[nodiscard]] std::shared_ptr<Context> world();

  struct Send {
    std::span<const std::byte> bytes;  // the pointer is null if the data are scattered
    int peer;                          // rank of the job
    int tag;
    std::uint32_t context_id;
    SendMode mode = SendMode::standard;
  };
  Status send(Context& context, const Send& what) noexcept;
  /// Sends `data`, which have `what.bytes.size()` bytes.
  Status send_scattered(Context& context, const Send& what, LayoutCursor& data) noexcept;
  /// Sends a message that fits into a head, if there is room for it now. Otherwise returns again and has sent nothing.
  Status send_fast(const Send& what) noexcept;
  void start_send(Operation& operation, const Send& what) noexcept;

  struct Receive {
    std::span<std::byte> buffer;  // as Send::bytes
    int peer;                     // rank of the job, or -1
    int tag;                      // or -1
    std::uint32_t context_id;
  };
  /// Receives, and waits for the message.
  Result<Envelope> receive(Context& context, const Receive& what) noexcept;
  /// The same into `data`, which have `what.buffer.size()` bytes.
  Result<Envelope> receive_scattered(Context& context, const Receive& what, LayoutCursor& data) noexcept;
  void start_receive(Operation& operation, const Receive& what) noexcept;
  /// Looks for a message without receiving it. Waits for one if `wait`, otherwise looks once.
  std::optional<Result<Envelope>> probe(Context& context, int peer, int tag, bool wait) noexcept;
  /// The same, and takes the message out of the queue: from then on it belongs to the operation, which has kind
  /// matched_probe.
  std::optional<Result<Envelope>> matched_probe(Operation& operation, int peer, int tag, bool wait) noexcept;
  /// Starts the receive of the message that `operation`, a matched probe, has taken.
  void receive_matched(Operation& operation, std::span<std::byte> buffer) noexcept;

  /// Advances an operation as far as possible. Called by its owning thread.
  fabric::Step advance(Operation& operation) noexcept {
    operation_looks.add();
    const bool is_short =
        operation.progress.state.load(std::memory_order_acquire) == State::matched &&  // pairs with become()
        operation.head.kind == Kind::message_inline && operation.call.kind == Operation::Kind::receive &&
        operation.scattered == nullptr;
    return is_short ? take_inline_fast(operation) : advance_slow(operation);
  }
  /// Waits for one operation.
  void wait(Operation& operation, job::Wait what) noexcept;
  /// Advances the collective until it is complete.
  Status play(SharedCollective& collective, job::Wait what) noexcept;
  /// Remembers that the kernel refuses copies to or from the peer's memory. Returns the status of a copy: denied if the
  /// payload can travel in another way.
  Status note_refusal(int peer, Status status) noexcept;
  /// True if the rank died or left: nothing arrives from it any more.
  [[nodiscard]] bool is_gone(int rank) const noexcept {
    return any_gone_.load(std::memory_order_relaxed) &&
           presence_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire) != Presence::here;
  }
  /// True if a rank of the communicator died. A rank that left does not count, because it has completed its part.
  [[nodiscard]] bool has_lost_one(const Context& context) const noexcept {
    return any_gone_.load(std::memory_order_relaxed) && finds_dead(context);
  }

  // Only an operation's owning thread may touch its user memory. A thread that waits for an operation of another thread
  // adopts it first. An operation is *stepwise* if its owning thread must advance it also while it waits for others,
  // because peers may depend on that. It is a collective, or its payload travels in pieces, has gaps, is in the
  // sender's bulk memory, or is copied by the receiver alone.
  /// Advances the stepwise operations that this thread owns. Returns retry if one of them needs it, otherwise `step`.
  fabric::Step advance_stepwise(fabric::Step step) noexcept;
  [[nodiscard]] bool stepwise_ready() noexcept;
  bool attach_stepwise(fabric::Sleeper* sleeper) noexcept;
  void adopt(Operation& operation) noexcept;

  // A *detached* operation has no request. It goes on, and frees itself when it is complete. The threads of the rank
  // advance it as deferred work when it has changed: a thread that is in the library, otherwise the service thread.
  /// Detaches a started operation that is no collective. Its communicator lives on as long. Returns false if there is
  /// no memory for that: then it still belongs to its request.
  bool detach(Operation& operation) noexcept;
  /// Called before a wait or a test returns that an operation is complete: copies the payloads of the detached receives
  /// that matched before.
  void finish_due_receives() noexcept {
    if (due_receives_.load(std::memory_order_acquire) != 0) [[unlikely]]  // pairs with count_not_due()
      finish_due_receives_slow();
  }

  /// Makes an operation that complete_foreign() completes. Throws std::bad_alloc.
  Operation* make_foreign() { return make_operation(Operation::Kind::foreign, *world_); }
  /// Completes a foreign operation with this status, once. Any thread. Its request may end before the call returns.
  void complete_foreign(Operation& operation, Status status) noexcept;

  /// Cancels a posted receive. Called by its owning thread. Does nothing if it has matched already.
  bool cancel(Operation& operation) noexcept;
  /// Registers `sleeper` to be woken when the operation changes; null unregisters. Returns false if it has changed
  /// already.
  bool attach(Operation& operation, fabric::Sleeper* sleeper) noexcept;
  /// Counts the changes of operations in `changes`, which must live until they are complete and stop_counting() has
  /// returned. Called by their owning thread, which advances them when they have changed, and nowhere else.
  /// `for_each_operation` calls its argument for each operation.
  template <class ForEach>
  void count_changes(Changes& changes, ForEach&& for_each_operation) noexcept {
    const std::lock_guard guard(lock_);
    for_each_operation([&](Operation& operation) {
      if (operation.owner.due != Operation::Due::always) stepwise_.unlist(operation);
      operation.waking.changes = &changes;
      if (operation.ready()) changes.add();
    });
  }
  void stop_counting() noexcept {
    const std::lock_guard guard(lock_);
  }  // waits for the thread that made the last change to release the lock
  void set_sleeper(Changes& changes, fabric::Sleeper* sleeper) noexcept {
    const std::lock_guard guard(lock_);
    changes.sleeper = sleeper;
  }
  /// Reports a long wait, for `tonari status` and for peers whose service thread must look.
  void waits_long(const Operation& operation, job::Wait what) noexcept;
  void waits_long(int peer, int tag, job::Wait what) noexcept;

  /// Throws std::bad_alloc.
  Operation* make_operation(Operation::Kind kind, Context& context);
  /// Makes an operation that outlives the call that starts it. Throws std::bad_alloc.
  Operation* make_started(Operation::Kind kind, Context& context);
  /// Declares, before the operation is started, that its data are in several places. Throws std::bad_alloc.
  void scatter(Operation& operation, const LayoutCursor& data);
  void free_operation(Operation* operation) noexcept;

  /// Returns the memory that a rank has for each rank of the job, from the start.
  static constexpr std::size_t bytes_per_rank() noexcept {
    return sizeof(std::atomic<Presence>) + sizeof(Held) + sizeof(std::atomic<std::uint32_t>) +
           sizeof(std::atomic<bool>);
  }

  // fabric::ProtocolHandler
  void receive(std::span<const fabric::Head> heads) noexcept override;
  void retry() noexcept override;
  [[nodiscard]] bool held_back() const noexcept override { return !held_count_.is_zero(); }
  void idle() noexcept override;
  void died(int rank) noexcept override;
  void left(int rank) noexcept override;
  void run_deferred_work() noexcept override;

 private:
  [[gnu::noinline]] fabric::Step advance_slow(Operation& operation) noexcept;
  [[gnu::cold, gnu::noinline]] Status play_by_messages(SharedCollective& collective, job::Wait what) noexcept;
  void list_as_stepwise(Operation& operation);
  void list_as_stepwise_locked(Operation& operation);
  void unlist_as_stepwise(Operation& operation) noexcept;
  [[gnu::noinline]] fabric::Step advance_stepwise_slow() noexcept;
  [[nodiscard]] bool is_stepwise_ready() const noexcept;
  void needs_steps(Operation& operation) noexcept;

  // Sends
  [[gnu::noinline]] Status send_slow(Context& context, const Send& what) noexcept;
  [[nodiscard]] bool way_is_free(int peer) const noexcept;
  [[nodiscard]] bool goes_unasked(int peer, std::size_t bytes) const noexcept;
  void count_sent(std::size_t bytes) noexcept;
  void prepare(Operation& operation, const Send& what) noexcept;
  Status launch(Operation& operation) noexcept;
  Status launch_whole(Operation& operation) noexcept;
  Status launch_announced(Operation& operation) noexcept;
  Status launch_refusal(Operation& operation) noexcept;
  bool take_ticket(Operation& operation) noexcept;
  void launch_or_hold(Operation& operation) noexcept;
  void hold(Operation& operation) noexcept;
  bool launch_held(int peer) noexcept;
  fabric::Step send_late(Operation& operation) noexcept;
  fabric::Step begin_transfer(Operation& operation) noexcept;
  fabric::Step copy_to_receiver(Operation& operation, const Terms& terms) noexcept;
  fabric::Step write_alone(Operation& operation, const Terms& terms) noexcept;
  fabric::Step send_pieces(Operation& operation) noexcept;
  fabric::Step send_remote_pieces(Operation& operation) noexcept;
  fabric::Step finish_send(Operation& operation, Status status) noexcept;

  // Receives
  [[gnu::noinline]] bool start_receive_slow(Operation& operation, Grant& grant) noexcept;
  void receive_other(const fabric::Head& head) noexcept;
  struct Arrivals;
  std::size_t arrive(std::span<const fabric::Head> heads) noexcept;
  void arrive(const fabric::Head& head, Arrivals& arrivals) noexcept;
  void post(Operation& operation) noexcept;
  void keep(const fabric::Head& head) noexcept;
  static bool keep_payload(fabric::Head& head, std::span<const std::byte> payload) noexcept;
  [[nodiscard]] bool match(Operation& operation, const fabric::Head& head, Grant& grant) noexcept;
  [[nodiscard]] Terms terms_for(const Operation& operation) const noexcept;
  [[nodiscard]] bool is_paged(const Operation& operation) const noexcept;
  void send_grant(int peer, const Grant& grant) noexcept;
  void send_reply(int peer, const fabric::Head& head) noexcept;
  fabric::Step take_inline_fast(Operation& operation) noexcept;
  fabric::Step take_payload(Operation& operation) noexcept;
  fabric::Step copy_from_sender(Operation& operation) noexcept;
  fabric::Step copy_alone(Operation& operation) noexcept;
  fabric::Step take_pieces(Operation& operation) noexcept;
  fabric::Step settle_receive(Operation& operation) noexcept;
  fabric::Step continue_in_pieces(Operation& operation) noexcept;
  static fabric::Step complete_receive(Operation& operation, Status status) noexcept;
  void reply_done(int peer, Ticket ticket, Status status) noexcept;
  void forget_incoming(Operation& operation) noexcept;
  static constexpr std::size_t probes_told_max = 8;
  std::size_t tell_probes(const fabric::Head& head, std::span<fabric::Sleeper*> to_wake) noexcept;
  void count_unexpected(std::int64_t payload_bytes) noexcept;
  void give_back_soon(int peer, std::uint64_t place) noexcept;
  void give_back_now() noexcept;
  void give_back(int peer, const Piece& piece) noexcept;

  // Deaths
  enum class Presence : std::uint8_t { here, left, dead };
  [[nodiscard]] bool cannot_complete(const Operation& operation) const noexcept;
  [[nodiscard]] bool has_a_dead_part(const Operation& operation) const noexcept;
  [[nodiscard]] bool finds_dead(const Context& context) const noexcept;
  void set_presence(int rank, Presence presence) noexcept;
  template <class Visit>
  void for_each_waiting(
      Visit&& visit) noexcept {  // posted receives and waiting probes; `visit` may withdraw its argument
    posted_.for_each(visit);
    for (Operation* each = probes_.front(); each != nullptr;) {
      Operation* const next = each->links.next;
      visit(*each);
      each = next;
    }
  }
  void withdraw_waiting(Operation& operation) noexcept {
    operation.call.kind == Operation::Kind::probe ? probes_.remove(operation) : posted_.withdraw(operation);
  }
  using Sleepers = std::vector<fabric::Sleeper*>;
  void become(Operation& operation, State state, Sleepers& to_wake) noexcept;
  void fail_send(Operation& operation, Sleepers& to_wake) noexcept;
  fabric::Step withdraw(Operation& operation) noexcept;
  fabric::Step abandon(Operation& operation) noexcept;

  // Detached operations
  void make_due(Operation& operation) noexcept;
  void count_not_due(const Operation& operation) noexcept;
  Operation* take_due() noexcept;
  void settle_due(Operation& operation, fabric::Step step) noexcept;
  void retry_blocked() noexcept;
  [[gnu::cold, gnu::noinline]] void finish_due_receives_slow() noexcept;
  static void abandon_detached(Operation& operation) noexcept;

  // The kernel may refuse copies to or from a peer at any time: see docs/modules/message.md.
  [[nodiscard]] bool is_refused(int peer) const noexcept {
    return refused_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed);
  }

  // Heads about announced payloads
  void granted(const fabric::Head& head) noexcept;
  [[nodiscard]] bool may_be_granted(Operation& operation, const Terms& terms) noexcept;
  void done(const fabric::Head& head) noexcept;
  [[nodiscard]] bool may_be_copying(const Operation& operation, State state) const noexcept;
  void finished(const fabric::Head& head) noexcept;
  void piece(const fabric::Head& head) noexcept;
  void late(const fabric::Head& head) noexcept;
  Operation* outgoing(std::uint32_t source, Ticket ticket) noexcept;
  void release_ticket(Operation& operation) noexcept;
  void become(Operation& operation, State state, fabric::Sleeper*& to_wake) noexcept;
  // Called under the lock. Afterwards the owning thread may destroy the operation, unless it is stepwise or detached:
  // that takes the lock. `changes` still exists: see stop_counting().
  void set_state(Operation& operation, State state) noexcept {
    Changes* const changes = operation.waking.changes;
    const bool is_stepwise = operation.owner.is_stepwise.load(std::memory_order_relaxed);
    operation.progress.state.store(
        state, std::memory_order_release);  // publishes the data that belong to the state; pairs with ready()
    if (changes != nullptr || is_stepwise) note_change(operation, changes);
  }
  void note_change(Operation& operation, Changes* changes) noexcept {
    if (changes == &changes_of_detached_) [[unlikely]]
      return make_due(operation);
    if (changes != nullptr) return changes->add();
    if (operation.owner.is_stepwise.load(std::memory_order_relaxed)) stepwise_.note(operation);
  }
  // Called under the lock: returns the sleeper to be woken when the operation changes; null if there is none.
  [[nodiscard]] fabric::Sleeper* sleeper_of(const Operation& operation) const noexcept {
    if (operation.waking.sleeper != nullptr) return operation.waking.sleeper;
    if (operation.waking.changes != nullptr) return operation.waking.changes->sleeper;
    if (!operation.owner.is_stepwise.load(std::memory_order_relaxed)) [[likely]]
      return nullptr;
    return stepwise_.sleeper_of(operation.owner.thread);
  }
  void complete(Operation& operation, Status status) noexcept;

  fabric::Engine& engine_;
  const void* const counting_thread_ = this_thread();
  const int self_;
  const std::size_t split_;
  const std::size_t direct_bytes_;
  const std::size_t chunk_bytes_max_;
  const std::uint64_t unexpected_bytes_max_;
  std::shared_ptr<Context> world_;

  SpinLock lock_;  // protects the queues, incoming_, outgoing_, and the members of operations that operation.hpp names
  PostedQueue posted_;
  UnexpectedQueue unexpected_;
  OperationList probes_;  // waiting probes
  IncomingTable incoming_;
  OutgoingTable outgoing_;
  std::uint64_t kept_bytes_ = 0;        // payload of unexpected messages kept here
  std::uint64_t unexpected_bytes_ = 0;  // the same plus the bytes of their heads

  StepwiseOperations stepwise_;                 // under lock_
  std::atomic<std::size_t> stepwise_count_{0};  // relaxed: a thread needs to see only its own changes

  DetachedOperations detached_;  // under lock_
  Changes changes_of_detached_;  // its address is the Waking::changes of detached operations
  // Number of detached receives that are due or being advanced. A thread that has seen a later message match also sees
  // that this number rose, since both happen under the lock. If it has fallen since, the thread sees the payload.
  std::atomic<std::uint32_t> due_receives_{0};

  struct Reply {
    int peer;
    fabric::Head head;
  };
  // Ranks for which died() or left() has run: by then the rank's heads that had arrived were handled (Engine::drain).
  // Written under lock_.
  std::atomic<bool> any_gone_{false};
  std::vector<std::atomic<Presence>> presence_;  // by rank

  SpinLock held_lock_;  // protects the next four
  // Sends that found no room, oldest first. `finish` heads go before messages: they need no order, and a message may
  // wait for the ticket of one.
  struct Held {
    OperationList finishes;
    OperationList messages;
  };
  std::vector<Held> held_;  // by peer
  std::vector<int> peers_with_held_;
  std::vector<Reply> held_replies_;
  fabric::HeldBack held_count_;                      // number of both, and of blocked detached operations
  std::vector<std::atomic<std::uint32_t>> held_to_;  // held sends by peer; see way_is_free()

  std::vector<std::atomic<bool>> refused_;  // by rank: the kernel has refused a copy to or from its memory. Relaxed

  // Blocks of peers' bulk memory that this rank has read. Freeing a block writes to a cache line that its owner reads.
  // Doing so at once would delay the next send, which is likely the reply, so it waits for an idle moment.
  struct Return {
    int peer;
    std::uint64_t place;
  };
  SpinLock returns_lock_;  // protects returns_ and returns_count_
  std::array<Return, 16> returns_;
  std::size_t returns_count_ = 0;
};

}  // namespace tonari::message
