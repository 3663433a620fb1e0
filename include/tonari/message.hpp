#pragma once

#include <tonari/job.hpp>
#include <tonari/layout.hpp>
#include <tonari/rank.hpp>
#include <tonari/request.hpp>
#include <tonari/result.hpp>
#include <tonari/status.hpp>
#include <tonari/transferable.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace tonari {

/// When a send is complete.
enum class SendMode : std::uint8_t {
  /// When the buffer may be used again. The message may still wait in memory of the runtime. A long message, or one
  /// to a rank that has many unreceived messages, waits until its receive is posted: two ranks that both send first
  /// may block each other.
  standard,
  /// When the matching receive was found posted and the data is in its buffer (MPI_Ssend).
  when_posted,
};

namespace message {
class Context;
struct Communicators;
struct Messages;
}  // namespace message

namespace detail {
/// Folds `count` elements of `in` into `inout`.
using Fold = void (*)(void* inout, const void* in, std::size_t count, const void* operation);
/// Which operand `inout` of a Fold is: inout[i] = operation(inout[i], in[i]) if it is the left one. `any`: the
/// operation commutes.
enum class Into : std::uint8_t { left, right, any };
struct Reduction {
  Fold fold;
  std::size_t element_bytes;
  const void* operation;
  Into into = Into::left;
};
/// Number of elements of each rank, and their size.
struct Counts {
  std::span<const std::size_t> of_ranks;
  std::size_t element_bytes;
};
}  // namespace detail

/// A message that a matched probe has removed from the queue: no other receive can get it, so that threads that probe
/// at the same time do not take each other's messages (Hoefler et al., EuroMPI 2010).
///
/// Life:    move-only. Receive it once; a message that is destroyed before is discarded.
/// Threads: one at a time.
class [[nodiscard]] Message {
 public:
  Message(Message&& other) noexcept;
  Message& operator=(Message&& other) noexcept;
  ~Message();

  /// ok, or why there is no message: invalid, peer_gone, no_memory. Then receiving it returns the same.
  [[nodiscard]] Status status() const noexcept { return result_.status; }
  [[nodiscard]] const Envelope& envelope() const noexcept { return result_.value; }

  /// The same as Communicator::receive_bytes and its started form.
  Result<Envelope> receive_bytes(std::span<std::byte> buffer) noexcept { return start_receive_bytes(buffer).wait(); }
  Request start_receive_bytes(std::span<std::byte> buffer) noexcept;
  /// The same as Communicator::receive and its started form.
  template <class T>
  Result<Envelope> receive(T&& values) noexcept {
    return start_receive(std::forward<T>(values)).wait();
  }
  template <class T>
  Request start_receive(T&& values) noexcept {
    if constexpr (!detail::check_received<T>()) {
      return {};
    } else if constexpr (detail::is_layout<std::remove_cvref_t<T>>) {
      return start_receive_blocks(detail::blocks_of(values));
    } else {
      return start_receive_bytes(detail::writable_bytes_of(values));
    }
  }

 private:
  friend class Communicator;
  friend struct message::Messages;
  Message(message::Operation* operation, Result<Envelope> result) noexcept : operation_(operation), result_(result) {}
  Request start_receive_blocks(const detail::Blocks& blocks) noexcept;

  message::Operation* operation_;  // null when there is none, or it was received
  Result<Envelope> result_;
};

/// The elements of several ranks, in the order of ranks, of which each may have any number.
template <class T>
struct Gathered {
  std::vector<T> values;
  std::vector<std::size_t> counts;  ///< By rank: number of elements. Empty where there is no result.

  /// The elements of one rank. Costs a pass over the counts before it.
  [[nodiscard]] std::span<const T> of(Rank rank) const noexcept {
    std::size_t first = 0;
    for (std::size_t i = 0; i < rank.index(); ++i) first += counts[i];
    return std::span(values).subspan(first, counts[rank.index()]);
  }
};

class Communicator;

/// A send or receive with its arguments, to be started many times.
///
/// Life:    refers to the communicator and to the buffer (and to the list of an Indexed), which must outlive it.
///          Move-only; must not be moved while it is under way.
/// Threads: one at a time.
class [[nodiscard]] PersistentRequest {
 public:
  /// Starts it once more. Returns false, and starts nothing, while the previous operation is incomplete.
  [[nodiscard]] bool start() noexcept;
  /// The same as of a Request, for the last time it was started; ok if it never was.
  Result<Envelope> wait() noexcept { return request_.wait(); }
  [[nodiscard]] std::optional<Result<Envelope>> test() noexcept { return request_.test(); }
  [[nodiscard]] bool complete() const noexcept { return request_.complete(); }
  bool cancel() noexcept { return request_.cancel(); }

 private:
  friend class Communicator;
  PersistentRequest(Communicator& communicator, const detail::Blocks& blocks, Rank peer, Tag tag,
                    std::optional<SendMode> send) noexcept
      : communicator_(&communicator), blocks_(blocks), peer_(peer), tag_(tag), send_(send) {}

  Communicator* communicator_;
  detail::Blocks blocks_;
  Rank peer_;
  Tag tag_;
  std::optional<SendMode> send_;  // nothing: a receive
  Request request_;
};

/// A group of ranks that exchange messages separately from every other communicator.
///
/// Buffers:  a value or a contiguous range: see Transferable. Point-to-point calls also take layouts: see layout.hpp.
///           Started operations refuse temporaries, as receives do; a span of a variable is accepted.
/// Order:    two messages from one rank to another, in one communicator, are received in the order in which they were
///           sent, as far as both match the receive.
/// Progress: see Request. A blocking call waits by spinning, yielding and then sleeping.
/// Threads:  any thread may call anything. Collectives of one communicator must be started in the same order on all its
///           ranks.
/// Errors:   blocking calls return a Status or a Result<...>, whose value is the message's header or the data; started
///           calls return a Request, which has the outcome. All of them return:
///             ok         done.
///             invalid    a rank, root or tag outside its range, or a null buffer with a length. Nothing was started,
///                        unless the call says otherwise.
///             peer_gone  a rank that the call needs died or left the job.
///             no_memory  the system refused memory for an operation, a layout or a result. Nothing was started, unless
///                        the call says otherwise.
///           Constructors, duplicate() and split() throw SetupError, or std::bad_alloc. No other call throws.
/// Deaths:   when a rank of the communicator died, collectives under way return peer_gone in the ranks that still need
///           it, and may return ok in others. All later collectives, duplicate() and split() fail. Messages between
///           the living go on.
/// Life:     must be destroyed before its Job, when none of its operations is under way.
class Communicator {
 public:
  /// All ranks of the job. Every call creates a handle of the same communicator.
  explicit Communicator(Job& job);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  [[nodiscard]] Rank rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// All ranks, in order, for loops.
  [[nodiscard]] PositionRange<Rank> ranks() const noexcept { return PositionRange<Rank>(size()); }
  /// The rank `distance` places after this one on the ring of all ranks; before it if `distance` is negative.
  [[nodiscard]] Rank neighbour(int distance) const noexcept { return detail::neighbour(rank(), distance, size()); }
  /// The ranks of the job that this communicator has.
  [[nodiscard]] const Group& group() const noexcept;
  /// The rank of the job that is `rank` here, which must be in [0, size()).
  [[nodiscard]] JobRank job_rank(Rank rank) const noexcept { return group().at(rank); }

  // Point to point. `tag` is from 0 to Tag::max; receives and probes also take Rank::any and Tag::any.

  /// Sends to `destination`. On return the buffer may be used again, whatever the status. Blocks while the runtime has
  /// no room for the message. Returns, beside the statuses of all calls:
  ///   bad_address  the buffer is not readable memory, or the receiver's is not writable.
  ///   bounds       a block of a layout leaves its memory.
  template <class T>
  Status send(const T& values, Rank destination, Tag tag = Tag{}, SendMode mode = SendMode::standard) noexcept {
    if constexpr (!detail::check_sent<const T&>()) {
      return Status::invalid;
    } else if constexpr (detail::is_layout<T>) {
      return start_send_blocks(detail::blocks_of(values), destination, tag, mode).wait().status;
    } else {
      return send_bytes(detail::bytes_of(values), destination, tag, mode);
    }
  }
  /// Receives the oldest message that matches `source` and `tag`, and returns its header. Messages that a rank sent
  /// before it died or left are still received; then a receive from it returns peer_gone. A receive from any rank that
  /// is posted when a rank of the communicator dies returns peer_gone, too; one posted later waits for the living.
  /// Returns, beside the statuses of all calls:
  ///   truncated    the message was longer than the buffer; the envelope has its full length.
  ///   bad_address  the buffer is not writable memory, or the sender's is not readable.
  ///   bounds       a block of a layout leaves its memory.
  template <class T>
  Result<Envelope> receive(T&& values, Rank source = Rank::any, Tag tag = Tag::any) noexcept {
    if constexpr (!detail::check_received<T>()) {
      return {Status::invalid, {}};
    } else if constexpr (detail::is_layout<std::remove_cvref_t<T>>) {
      return start_receive_blocks(detail::blocks_of(values), source, tag).wait();
    } else {
      return receive_bytes(detail::writable_bytes_of(values), source, tag);
    }
  }
  /// The same, started: see Request.
  template <class T>
  Request start_send(T&& values, Rank destination, Tag tag = Tag{}, SendMode mode = SendMode::standard) noexcept {
    if constexpr (!detail::check_start_sent<T>()) {
      return {};
    } else if constexpr (detail::is_layout<std::remove_cvref_t<T>>) {
      return start_send_blocks(detail::blocks_of(values), destination, tag, mode);
    } else {
      return start_send_bytes(detail::bytes_of(values), destination, tag, mode);
    }
  }
  template <class T>
  Request start_receive(T&& values, Rank source = Rank::any, Tag tag = Tag::any) noexcept {
    if constexpr (!detail::check_received<T>()) {
      return {};
    } else if constexpr (detail::is_layout<std::remove_cvref_t<T>>) {
      return start_receive_blocks(detail::blocks_of(values), source, tag);
    } else {
      return start_receive_bytes(detail::writable_bytes_of(values), source, tag);
    }
  }
  /// The same, to be started many times: see PersistentRequest.
  template <class T>
  PersistentRequest prepare_send(T&& values, Rank destination, Tag tag = Tag{},
                                 SendMode mode = SendMode::standard) noexcept {
    if constexpr (detail::check_start_sent<T>()) {
      return {*this, detail::sent_blocks(values), destination, tag, mode};
    }
  }
  template <class T>
  PersistentRequest prepare_receive(T&& values, Rank source = Rank::any, Tag tag = Tag::any) noexcept {
    if constexpr (detail::check_received<T>()) {
      return {*this, detail::received_blocks(values), source, tag, std::nullopt};
    }
  }

  /// Receives a message of any length: finds it by a matched probe, allocates room, and returns the values. T is a
  /// value, or a container that can be resized: world.receive<std::vector<double>>(Rank{1}). Threads that receive at
  /// the same time do not take each other's messages. Returns, beside the statuses of receive():
  ///   invalid    the length of the message is no multiple of the element's, or not that of the value; the message is
  ///              lost.
  ///   no_memory  the system refused memory; the message is lost.
  template <class T>
  Result<T> receive(Rank source = Rank::any, Tag tag = Tag::any) noexcept;

  /// Sends `sent` to `destination` and receives into `received` from `source`, both at once, so that ranks on a ring or
  /// a grid do not wait for each other (MPI_Sendrecv). Returns the envelope of the received message, and the first
  /// failure of the two.
  template <class T, class U>
  Result<Envelope> send_receive(const T& sent, Rank destination, U&& received, Rank source, Tag tag = Tag{}) noexcept {
    Request coming = start_receive(std::forward<U>(received), source, tag);
    const Status status = send(sent, destination, tag);
    if (status != Status::ok && coming.cancel()) return {status, {}};
    Result<Envelope> result = coming.wait();
    if (status != Status::ok) result.status = status;
    return result;
  }

  /// The same for bytes.
  Status send_bytes(std::span<const std::byte> bytes, Rank destination, Tag tag,
                    SendMode mode = SendMode::standard) noexcept;
  Result<Envelope> receive_bytes(std::span<std::byte> buffer, Rank source, Tag tag) noexcept;
  Request start_send_bytes(std::span<const std::byte> bytes, Rank destination, Tag tag,
                           SendMode mode = SendMode::standard) noexcept;
  Request start_receive_bytes(std::span<std::byte> buffer, Rank source, Tag tag) noexcept;

  /// Waits for a message that matches, and returns its header. The message stays in the queue.
  Result<Envelope> probe(Rank source, Tag tag) noexcept;
  /// Makes progress once. Returns the header of the oldest message that matches, if there is one; nothing also where
  /// probe() would return a failure: Job::alive() tells a loop that the source died.
  [[nodiscard]] std::optional<Envelope> probe_now(Rank source, Tag tag) noexcept;
  /// The same as probe(), and removes the message from the queue: it can only be received through the returned object.
  Message matched_probe(Rank source, Tag tag) noexcept;
  /// The same as probe_now(), and removes the message from the queue. Returns nothing also if memory is short.
  [[nodiscard]] std::optional<Message> matched_probe_now(Rank source, Tag tag) noexcept;

  // Collectives. Every rank of the communicator calls them, in the same order. Counts are in elements. The parts of
  // several ranks follow each other in the order of ranks, without gaps; the buffer for all of them may be longer
  // (not the sent one of all_to_all). No two buffers of a call may overlap. Counts are read during the call only.
  // A blocking form on one rank and a started form on another match.
  // A rank returns invalid if its counts and sizes do not fit each other, or if the data that it receives do not fit
  // them; its buffer is then undefined. A rank that passes a root outside its range takes no part: ranks that need it
  // wait. Neither disturbs the next collective.

  /// Returns when every rank has called it.
  Status barrier() noexcept;
  Request start_barrier() noexcept;

  /// Copies the root's values to every rank. All ranks pass the same length.
  template <class T>
  Status broadcast(T&& values, Rank root) noexcept {
    return broadcast_bytes(detail::received_bytes<T>(values), root);
  }
  template <class T>
  Request start_broadcast(T&& values, Rank root) noexcept {
    return start_broadcast_bytes(detail::received_bytes<T>(values), root);
  }
  Status broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept;
  Request start_broadcast_bytes(std::span<std::byte> bytes, Rank root) noexcept;

  /// Copies rank i's `mine` to all[i * mine.size()] on the root. The other ranks' `all` is not used.
  template <class T, class All>
  Status gather(const T& mine, All&& all, Rank root) noexcept {
    return gather_bytes(detail::sent_bytes(mine), detail::received_bytes<All>(all), root);
  }
  template <class T, class All>
  Request start_gather(T&& mine, All&& all, Rank root) noexcept {
    return start_gather_bytes(detail::start_sent_bytes<T>(mine), detail::received_bytes<All>(all), root);
  }
  Status gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Rank root) noexcept;
  Request start_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, Rank root) noexcept;
  /// The same as gather, with counts[i] elements from rank i. Only the root's `all` and `counts` are used.
  template <class T, class All>
  Status gather_v(const T& mine, All&& all, std::span<const std::size_t> counts, Rank root) noexcept {
    return start_gather_v(mine, std::forward<All>(all), counts, root).wait().status;
  }
  template <class T, class All>
  Request start_gather_v(T&& mine, All&& all, std::span<const std::size_t> counts, Rank root) noexcept {
    return start_gather_v_bytes(detail::start_sent_bytes<T>(mine), detail::received_bytes<All>(all),
                                counts_of<T>(counts), root);
  }

  /// Copies the root's all[i * mine.size()] to rank i's `mine`. Only the root's `all` is used.
  template <class All, class T>
  Status scatter(const All& all, T&& mine, Rank root) noexcept {
    return start_scatter(all, std::forward<T>(mine), root).wait().status;
  }
  template <class All, class T>
  Request start_scatter(All&& all, T&& mine, Rank root) noexcept {
    return start_scatter_bytes(detail::start_sent_bytes<All>(all), detail::received_bytes<T>(mine), root);
  }
  /// The same as scatter, with counts[i] elements for rank i. Only the root's `all` and `counts` are used.
  template <class All, class T>
  Status scatter_v(const All& all, std::span<const std::size_t> counts, T&& mine, Rank root) noexcept {
    return start_scatter_v(all, counts, std::forward<T>(mine), root).wait().status;
  }
  template <class All, class T>
  Request start_scatter_v(All&& all, std::span<const std::size_t> counts, T&& mine, Rank root) noexcept {
    return start_scatter_v_bytes(detail::start_sent_bytes<All>(all), counts_of<T>(counts),
                                 detail::received_bytes<T>(mine), root);
  }

  /// A gather whose result every rank receives.
  template <class T, class All>
  Status all_gather(const T& mine, All&& all) noexcept {
    return start_all_gather(mine, std::forward<All>(all)).wait().status;
  }
  template <class T, class All>
  Request start_all_gather(T&& mine, All&& all) noexcept {
    return start_all_gather_bytes(detail::start_sent_bytes<T>(mine), detail::received_bytes<All>(all));
  }
  /// The same as all_gather, with counts[i] elements from rank i. All ranks pass the same counts.
  template <class T, class All>
  Status all_gather_v(const T& mine, All&& all, std::span<const std::size_t> counts) noexcept {
    return start_all_gather_v(mine, std::forward<All>(all), counts).wait().status;
  }
  template <class T, class All>
  Request start_all_gather_v(T&& mine, All&& all, std::span<const std::size_t> counts) noexcept {
    return start_all_gather_v_bytes(detail::start_sent_bytes<T>(mine), detail::received_bytes<All>(all),
                                    counts_of<T>(counts));
  }

  /// Part i of `sent` goes to rank i, where it becomes part rank() of `received`. All parts have the same size on all
  /// ranks.
  template <class T, class U>
  Status all_to_all(const T& sent, U&& received) noexcept {
    return start_all_to_all(sent, std::forward<U>(received)).wait().status;
  }
  template <class T, class U>
  Request start_all_to_all(T&& sent, U&& received) noexcept {
    return start_all_to_all_bytes(detail::start_sent_bytes<T>(sent), detail::received_bytes<U>(received),
                                  sizeof(detail::Element<T>));
  }
  /// The same as all_to_all, with sent_counts[i] elements for rank i and received_counts[i] from it.
  template <class T, class U>
  Status all_to_all_v(const T& sent, std::span<const std::size_t> sent_counts, U&& received,
                      std::span<const std::size_t> received_counts) noexcept {
    return start_all_to_all_v(sent, sent_counts, std::forward<U>(received), received_counts).wait().status;
  }
  template <class T, class U>
  Request start_all_to_all_v(T&& sent, std::span<const std::size_t> sent_counts, U&& received,
                             std::span<const std::size_t> received_counts) noexcept {
    return start_all_to_all_v_bytes(detail::start_sent_bytes<T>(sent), counts_of<T>(sent_counts),
                                    detail::received_bytes<U>(received), counts_of<U>(received_counts));
  }

  // Reductions, in place. The operation must be associative; it need not commute, since operands stay in the order of
  // ranks. The grouping of the operands depends on the number of ranks and of elements, and between hosts on which
  // ranks share a host; with the same of these, the same numbers give the same rounding. A started reduction uses the
  // operation until it is complete, so that it must be an lvalue. The operation runs in the thread that starts, tests
  // or waits, must not throw, and must not call the library.

  /// Combines values[i] of all ranks by `operation` into the root's `values`. The other ranks' stay as they are.
  template <class T, class Operation = std::plus<>>
  Status reduce(T&& values, Rank root, const Operation& operation = {}) noexcept {
    return start_reduce(std::forward<T>(values), root, operation).wait().status;
  }
  template <class T, class Operation>
  Request start_reduce(T&& values, Rank root, const Operation& operation) noexcept {
    return start_reduce_bytes(detail::received_bytes<T>(values), root, reduction<detail::Element<T>>(operation));
  }
  template <class T, class Operation>
  Request start_reduce(T&& values, Rank root, const Operation&& operation) = delete;

  /// Combines values[i] of all ranks by `operation`, so that every rank has the result.
  template <class T, class Operation = std::plus<>>
  Status all_reduce(T&& values, const Operation& operation = {}) noexcept {
    return all_reduce_bytes(detail::received_bytes<T>(values), reduction<detail::Element<T>>(operation));
  }
  template <class T, class Operation>
  Request start_all_reduce(T&& values, const Operation& operation) noexcept {
    return start_all_reduce_bytes(detail::received_bytes<T>(values), reduction<detail::Element<T>>(operation));
  }
  template <class T, class Operation>
  Request start_all_reduce(T&& values, const Operation&& operation) = delete;
  template <class T>
  Request start_all_reduce(T&& values) noexcept {
    static constexpr std::plus<> plus;
    return start_all_reduce(std::forward<T>(values), plus);
  }

  /// values[i] becomes the combination of values[i] of ranks 0 to rank().
  template <class T, class Operation = std::plus<>>
  Status scan(T&& values, const Operation& operation = {}) noexcept {
    return start_scan(std::forward<T>(values), operation).wait().status;
  }
  template <class T, class Operation>
  Request start_scan(T&& values, const Operation& operation) noexcept {
    return start_scan_bytes(detail::received_bytes<T>(values), reduction<detail::Element<T>>(operation), false);
  }
  template <class T, class Operation>
  Request start_scan(T&& values, const Operation&& operation) = delete;

  /// values[i] becomes the combination of values[i] of ranks 0 to rank() - 1. Rank 0's values stay as they are.
  template <class T, class Operation = std::plus<>>
  Status exclusive_scan(T&& values, const Operation& operation = {}) noexcept {
    return start_exclusive_scan(std::forward<T>(values), operation).wait().status;
  }
  template <class T, class Operation>
  Request start_exclusive_scan(T&& values, const Operation& operation) noexcept {
    return start_scan_bytes(detail::received_bytes<T>(values), reduction<detail::Element<T>>(operation), true);
  }
  template <class T, class Operation>
  Request start_exclusive_scan(T&& values, const Operation&& operation) = delete;

  // Collectives that return their result, for check(): const long sum = check(world.all_reduce_value(mine)). Values are
  // single values or arrays of a size known to the compiler. The result is meaningful if the status is ok.

  /// The root's `value`, on every rank.
  template <class T>
  Result<T> broadcast_value(T value, Rank root) noexcept {
    const Status status = broadcast(value, root);
    return {status, std::move(value)};
  }
  /// The combination of all ranks' values, on every rank.
  template <class T, class Operation = std::plus<>>
  Result<T> all_reduce_value(T value, const Operation& operation = {}) noexcept {
    const Status status = all_reduce(value, operation);
    return {status, std::move(value)};
  }
  /// The combination of all ranks' values, on the root. The other ranks get their own value back.
  template <class T, class Operation = std::plus<>>
  Result<T> reduce_value(T value, Rank root, const Operation& operation = {}) noexcept {
    const Status status = reduce(value, root, operation);
    return {status, std::move(value)};
  }
  /// The combination of the values of ranks 0 to rank().
  template <class T, class Operation = std::plus<>>
  Result<T> scan_value(T value, const Operation& operation = {}) noexcept {
    const Status status = scan(value, operation);
    return {status, std::move(value)};
  }
  /// The combination of the values of ranks 0 to rank() - 1. Rank 0 gets its own value back.
  template <class T, class Operation = std::plus<>>
  Result<T> exclusive_scan_value(T value, const Operation& operation = {}) noexcept {
    const Status status = exclusive_scan(value, operation);
    return {status, std::move(value)};
  }
  /// All ranks' elements, of which each rank may have any number, on the root; nothing on the other ranks. The counts
  /// are gathered first. Returns, beside the statuses of all calls:
  ///   no_memory  the system refused memory for the result of this rank, which took part with empty messages.
  template <class T>
  Result<Gathered<detail::Element<T>>> gather_values(const T& mine, Rank root) noexcept;
  /// The same, with the result on every rank. Returns also:
  ///   invalid    another rank had no memory for its result.
  template <class T>
  Result<Gathered<detail::Element<T>>> all_gather_values(const T& mine) noexcept;

  /// A communicator of the same ranks. Collective.
  [[nodiscard]] Communicator duplicate();
  /// A communicator of the ranks that pass the same `color`, ordered by `key`, then by rank here. Collective. A rank
  /// that passes a negative color gets nothing.
  [[nodiscard]] std::optional<Communicator> split(int color, int key);

 private:
  friend class PersistentRequest;
  friend struct message::Communicators;
  explicit Communicator(std::shared_ptr<message::Context> context) noexcept;
  Request start_send_blocks(const detail::Blocks& blocks, Rank destination, Tag tag, SendMode mode) noexcept;
  Request start_receive_blocks(const detail::Blocks& blocks, Rank source, Tag tag) noexcept;
  Status all_reduce_bytes(std::span<std::byte> values, detail::Reduction reduction) noexcept;
  Request start_all_reduce_bytes(std::span<std::byte> values, detail::Reduction reduction) noexcept;
  Request start_reduce_bytes(std::span<std::byte> values, Rank root, detail::Reduction reduction) noexcept;
  Request start_scan_bytes(std::span<std::byte> values, detail::Reduction reduction, bool exclusive) noexcept;
  Request start_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all, detail::Counts counts,
                               Rank root) noexcept;
  Request start_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine, Rank root) noexcept;
  Request start_scatter_v_bytes(std::span<const std::byte> all, detail::Counts counts, std::span<std::byte> mine,
                                Rank root) noexcept;
  Request start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) noexcept;
  Request start_all_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                   detail::Counts counts) noexcept;
  Request start_all_to_all_bytes(std::span<const std::byte> sent, std::span<std::byte> received,
                                 std::size_t element_bytes) noexcept;
  Request start_all_to_all_v_bytes(std::span<const std::byte> sent, detail::Counts sent_counts,
                                   std::span<std::byte> received, detail::Counts received_counts) noexcept;

  template <class T>
  static detail::Counts counts_of(std::span<const std::size_t> counts) noexcept {
    return {counts, sizeof(detail::Element<T>)};
  }
  template <class T, class Operation>
  static detail::Reduction reduction(const Operation& operation) noexcept {
    static_assert(alignof(T) <= alignof(std::max_align_t), "a reduction works in memory of ordinary alignment");
    static_assert(std::is_invocable_r_v<T, const Operation&, const T&, const T&>,
                  "an operation takes two elements and returns one; operator() of an object must be const");
    // The address of a function is no const void*, but can be converted to one and back (POSIX, dlsym).
    return {[](void* inout, const void* in, std::size_t count, const void* op) {
              auto* left = static_cast<T*>(inout);
              const auto* right = static_cast<const T*>(in);
              auto* const combine = reinterpret_cast<std::add_pointer_t<const Operation>>(const_cast<void*>(op));
              for (std::size_t i = 0; i < count; ++i) left[i] = (*combine)(left[i], right[i]);
            },
            sizeof(T), reinterpret_cast<const void*>(&operation)};
  }

  std::shared_ptr<message::Context> context_;
};

namespace detail {
template <class T>
concept Resizable = std::ranges::contiguous_range<T> && requires(T& values, std::size_t count) {
  values.resize(count);
};
/// Returns false if the system refuses the memory.
template <class T>
[[nodiscard]] bool try_resize(T& values, std::size_t count) noexcept {
  try {
    values.resize(count);
  } catch (const std::exception&) {  // bad_alloc, length_error
    return false;
  }
  return true;
}
}  // namespace detail

template <class T>
Result<T> Communicator::receive(Rank source, Tag tag) noexcept {
  static_assert(
      Transferable<T> && (detail::Resizable<T> || detail::Plain<T>),
      "receive<T>() returns a trivially copyable value, or a container that can be resized, such as a vector");
  Message message = matched_probe(source, tag);
  if (message.status() != Status::ok) return {message.status(), {}};
  const std::size_t bytes = message.envelope().bytes;
  Result<T> result;
  if constexpr (detail::Resizable<T>) {
    constexpr std::size_t each = sizeof(detail::Element<T>);
    if (bytes % each != 0) return {Status::invalid, {}};
    if (!detail::try_resize(result.value, bytes / each)) return {Status::no_memory, {}};
  } else if (bytes != sizeof(T)) {
    return {Status::invalid, {}};
  }
  result.status = message.receive(result.value).status;
  return result;
}

// A rank without memory for its result passes empty buffers. The collective then fails at this rank, and the others do
// not wait for it.
template <class T>
Result<Gathered<detail::Element<T>>> Communicator::gather_values(const T& mine, Rank root) noexcept {
  constexpr std::size_t each = sizeof(detail::Element<T>);
  const std::size_t count = detail::sent_bytes(mine).size() / each;
  Gathered<detail::Element<T>> all;
  bool has_room = rank() != root || detail::try_resize(all.counts, static_cast<std::size_t>(size()));
  Status status = gather(count, all.counts, root);
  if (has_room && status != Status::ok) return {status, {}};
  has_room =
      has_room && detail::try_resize(all.values, std::accumulate(all.counts.begin(), all.counts.end(), std::size_t{0}));
  status = gather_v(mine, all.values, all.counts, root);
  if (!has_room) return {Status::no_memory, {}};
  return {status, std::move(all)};
}

template <class T>
Result<Gathered<detail::Element<T>>> Communicator::all_gather_values(const T& mine) noexcept {
  constexpr std::size_t each = sizeof(detail::Element<T>);
  const std::size_t count = detail::sent_bytes(mine).size() / each;
  Gathered<detail::Element<T>> all;
  const bool has_counts = detail::try_resize(all.counts, static_cast<std::size_t>(size()));
  Status status = all_gather(count, all.counts);
  // Without this rank's count all ranks end here.
  if (status != Status::ok) return {has_counts ? status : Status::no_memory, {}};
  const bool has_values =
      detail::try_resize(all.values, std::accumulate(all.counts.begin(), all.counts.end(), std::size_t{0}));
  status = all_gather_v(mine, all.values, all.counts);
  if (!has_values) return {Status::no_memory, {}};
  return {status, std::move(all)};
}

inline bool PersistentRequest::start() noexcept {
  if (!request_.complete()) return false;
  request_ = send_ ? communicator_->start_send_blocks(blocks_, peer_, tag_, *send_)
                   : communicator_->start_receive_blocks(blocks_, peer_, tag_);
  return true;
}

}  // namespace tonari
