#pragma once

#include <tonari/job.hpp>
#include <tonari/layout.hpp>
#include <tonari/request.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>

namespace tonari {

/// When a send counts as done.
enum class SendMode : std::uint8_t {
  standard,     ///< When the buffer may be used again. The message may still wait in memory of the runtime.
  when_posted,  ///< When the matching receive was found posted and the data lie in its buffer, with no copy between.
};

namespace message {
class Context;
/// Folds `count` elements of `in` into `inout`: inout[i] = operation(inout[i], in[i]).
using Fold = void (*)(void* inout, const void* in, std::size_t count, const void* operation);
struct Reduction {
  Fold fold;
  std::size_t element_bytes;
  const void* operation;
};
/// How many elements of so many bytes belong to each rank.
struct Counts {
  std::span<const std::size_t> of_ranks;
  std::size_t element_bytes;
};
}  // namespace message

/// A message that a matched probe has taken out of the queue: no other receive can get it, so that threads which probe
/// side by side do not take each other's (Hoefler et al., EuroMPI 2010). Move-only. Receive it once; one that is
/// destroyed before is thrown away.
/// Threads: one at a time.
class Message {
 public:
  Message(Message&& other) noexcept;
  Message& operator=(Message&& other) noexcept;
  ~Message();

  /// ok, or why there is no message: invalid, peer_gone, no_memory. Then receiving it answers the same.
  [[nodiscard]] Status status() const noexcept { return result_.status; }
  [[nodiscard]] const Envelope& envelope() const noexcept { return result_.envelope; }

  /// As Communicator::receive_bytes.
  Result receive_bytes(std::span<std::byte> buffer) noexcept { return start_receive_bytes(buffer).wait(); }
  [[nodiscard]] Request start_receive_bytes(std::span<std::byte> buffer) noexcept;
  template <class T>
  Result receive(T&& values) noexcept;
  template <class T>
  [[nodiscard]] Request start_receive(T&& values) noexcept;

 private:
  friend class Communicator;
  Message(message::Operation* operation, Result result) noexcept : operation_(operation), result_(result) {}
  Request start_receive_blocks(const message::Blocks& blocks) noexcept;
  Request begin_receive(std::span<std::byte> buffer) noexcept;

  message::Operation* operation_;  // null when there is none, or it was received
  Result result_;
};

namespace message {
template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;
/// Its bytes are the value itself, and tell another process the same.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
                !std::is_null_pointer_v<T> && !std::ranges::view<T> && !std::input_or_output_iterator<T> &&
                !is_reference_wrapper<T> && !is_layout<T>;
}  // namespace message

/// What a message may carry: one value of a trivially copyable type, or a contiguous range of them (a vector, a span,
/// an array). Pointers, iterators and other views are refused: their bytes mean nothing elsewhere.
template <class T>
concept Transferable = (std::ranges::contiguous_range<T> && std::ranges::sized_range<T> &&
                        message::Plain<std::ranges::range_value_t<T>>) ||
                       (!std::ranges::contiguous_range<T> && message::Plain<std::remove_cvref_t<T>>);

namespace message {
template <class T>
struct ElementOf {
  using type = std::remove_cvref_t<T>;
};
template <std::ranges::contiguous_range T>
struct ElementOf<T> {
  using type = std::ranges::range_value_t<T>;
};
template <class T>
using Element = typename ElementOf<T>::type;

template <class T>
std::span<const std::byte> bytes_of(const T& values) noexcept {
  if constexpr (std::ranges::contiguous_range<T>) {
    return std::as_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
  } else {
    return std::as_bytes(std::span(&values, 1));
  }
}
template <class T>
std::span<std::byte> writable_bytes_of(T& values) noexcept {
  if constexpr (std::ranges::contiguous_range<T>) {
    return std::as_writable_bytes(std::span(std::ranges::data(values), std::ranges::size(values)));
  } else {
    return std::as_writable_bytes(std::span(&values, 1));
  }
}
}  // namespace message

/// A layout of what a message may carry: from where it may be sent, and into which it may be received.
template <class T>
concept SendableLayout = Layout<T> && message::Plain<std::remove_const_t<message::LayoutElement<T>>>;
template <class T>
concept ReceivableLayout = SendableLayout<T> && !std::is_const_v<message::LayoutElement<T>>;

template <class T>
Result Message::receive(T&& values) noexcept {
  return start_receive(values).wait();
}
template <class T>
Request Message::start_receive(T&& values) noexcept {
  static_assert(Transferable<T> || ReceivableLayout<T>);
  if constexpr (ReceivableLayout<T>) {
    return start_receive_blocks(message::blocks_of(values));
  } else {
    return start_receive_bytes(message::writable_bytes_of(values));
  }
}

class Communicator;

/// A send or receive with its arguments, started again and again. It refers to the communicator and to the buffer (and
/// to the list of an Indexed), which must outlive it. Move-only; not while it is under way. Threads: one at a time.
class PersistentRequest {
 public:
  /// Starts it once more. False, and nothing is started, while the last time is not complete.
  bool start() noexcept;
  /// As of Request, for the last time it was started; ok when it never was.
  Result wait() noexcept { return request_.wait(); }
  std::optional<Result> test() noexcept { return request_.test(); }
  [[nodiscard]] bool complete() const noexcept { return request_.complete(); }
  bool cancel() noexcept { return request_.cancel(); }

 private:
  friend class Communicator;
  PersistentRequest(Communicator& communicator, const message::Blocks& blocks, int peer, int tag,
                    std::optional<SendMode> send) noexcept
      : communicator_(&communicator), blocks_(blocks), peer_(peer), tag_(tag), send_(send) {}

  Communicator* communicator_;
  message::Blocks blocks_;
  int peer_;
  int tag_;
  std::optional<SendMode> send_;  // nothing: a receive
  Request request_;
};

/// A group of ranks that exchange messages apart from those of every other communicator.
///
/// Order:   two messages from one rank to another, in one communicator, are received in the order they were sent,
///          as far as both match the receive.
/// Threads: any thread may call anything; collectives of one communicator must be started in the same order on all
///          its ranks.
/// Errors:  as Status; a wrong rank, root or tag answers Status::invalid and starts nothing. To the other ranks a
///          collective that one got wrong is missing its part; the next one is not disturbed. Constructors,
///          duplicate() and split() throw SetupError.
/// Life:    must be destroyed before its Job, when none of its operations is under way.
class Communicator {
 public:
  /// All ranks of the job. Every rank of the job gets the same communicator by it, any number of times.
  explicit Communicator(Job& job);
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] const Group& group() const noexcept;

  /// Sends bytes[0, n) to `destination` with `tag` (0 to tag_max). On return `bytes` may be used again, whatever the
  /// status. Answers ok, invalid, peer_gone, bad_address. Blocks while the runtime has no room for the message.
  Status send_bytes(std::span<const std::byte> bytes, int destination, int tag,
                    SendMode mode = SendMode::standard) noexcept;
  /// Receives the oldest message that matches `source` (or any_source) and `tag` (or any_tag). What a rank sent before
  /// it died or left is received still; then a receive from it answers peer_gone. So does one from any_source that is
  /// posted when a rank of the communicator dies; one posted later waits for the living. Answers ok, truncated,
  /// invalid, peer_gone, bad_address.
  Result receive_bytes(std::span<std::byte> buffer, int source, int tag) noexcept;
  [[nodiscard]] Request start_send_bytes(std::span<const std::byte> bytes, int destination, int tag,
                                         SendMode mode = SendMode::standard) noexcept;
  [[nodiscard]] Request start_receive_bytes(std::span<std::byte> buffer, int source, int tag) noexcept;

  /// Waits for a message that matches and answers its envelope, leaving the message where it is.
  Result probe(int source, int tag) noexcept;
  /// Makes progress once; the envelope of the oldest message that matches, if there is one.
  std::optional<Envelope> probe_now(int source, int tag) noexcept;
  /// As probe, and takes the message out of the queue: only by what is answered can it be received.
  [[nodiscard]] Message matched_probe(int source, int tag) noexcept;
  /// As probe_now, and takes the message out of the queue. Nothing also when there is no memory for it.
  [[nodiscard]] std::optional<Message> matched_probe_now(int source, int tag) noexcept;

  template <Transferable T>
  Status send(const T& values, int destination, int tag = 0, SendMode mode = SendMode::standard) noexcept {
    return send_bytes(message::bytes_of(values), destination, tag, mode);
  }
  template <Transferable T>
  Result receive(T&& values, int source = any_source, int tag = any_tag) noexcept {
    return receive_bytes(message::writable_bytes_of(values), source, tag);
  }
  template <Transferable T>
  [[nodiscard]] Request start_send(const T& values, int destination, int tag = 0,
                                   SendMode mode = SendMode::standard) noexcept {
    return start_send_bytes(message::bytes_of(values), destination, tag, mode);
  }
  template <Transferable T>
  [[nodiscard]] Request start_receive(T&& values, int source = any_source, int tag = any_tag) noexcept {
    return start_receive_bytes(message::writable_bytes_of(values), source, tag);
  }

  /// A send or receive to be started many times with these arguments: see PersistentRequest.
  template <Transferable T>
  [[nodiscard]] PersistentRequest prepare_send(const T& values, int destination, int tag = 0,
                                               SendMode mode = SendMode::standard) noexcept;
  template <Transferable T>
  [[nodiscard]] PersistentRequest prepare_receive(T&& values, int source = any_source, int tag = any_tag) noexcept;

  // The same for what lies in several places: see layout.hpp. They answer bounds and no_memory too.
  template <SendableLayout L>
  Status send(const L& layout, int destination, int tag = 0, SendMode mode = SendMode::standard) noexcept {
    return start_send(layout, destination, tag, mode).wait().status;
  }
  template <ReceivableLayout L>
  Result receive(const L& layout, int source = any_source, int tag = any_tag) noexcept {
    return start_receive(layout, source, tag).wait();
  }
  template <SendableLayout L>
  [[nodiscard]] Request start_send(const L& layout, int destination, int tag = 0,
                                   SendMode mode = SendMode::standard) noexcept {
    return start_send_blocks(message::blocks_of(layout), destination, tag, mode);
  }
  template <ReceivableLayout L>
  [[nodiscard]] Request start_receive(const L& layout, int source = any_source, int tag = any_tag) noexcept {
    return start_receive_blocks(message::blocks_of(layout), source, tag);
  }
  template <SendableLayout L>
  [[nodiscard]] PersistentRequest prepare_send(const L& layout, int destination, int tag = 0,
                                               SendMode mode = SendMode::standard) noexcept {
    return {*this, message::blocks_of(layout), destination, tag, mode};
  }
  template <ReceivableLayout L>
  [[nodiscard]] PersistentRequest prepare_receive(const L& layout, int source = any_source,
                                                  int tag = any_tag) noexcept {
    return {*this, message::blocks_of(layout), source, tag, std::nullopt};
  }

  /// Returns when every rank has called it.
  Status barrier() noexcept;
  [[nodiscard]] Request start_barrier() noexcept;

  /// Copies the root's bytes to every rank; all give the same length.
  Status broadcast_bytes(std::span<std::byte> bytes, int root) noexcept;
  [[nodiscard]] Request start_broadcast_bytes(std::span<std::byte> bytes, int root) noexcept;
  template <Transferable T>
  Status broadcast(T&& values, int root) noexcept {
    return broadcast_bytes(message::writable_bytes_of(values), root);
  }
  template <Transferable T>
  [[nodiscard]] Request start_broadcast(T&& values, int root) noexcept {
    return start_broadcast_bytes(message::writable_bytes_of(values), root);
  }

  /// Puts rank i's `mine` at all[i * mine.size()] on the root; elsewhere `all` is not looked at.
  Status gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all, int root) noexcept;
  [[nodiscard]] Request start_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                           int root) noexcept;
  template <Transferable T, Transferable All>
  Status gather(const T& mine, All&& all, int root) noexcept {
    return gather_bytes(message::bytes_of(mine), message::writable_bytes_of(all), root);
  }
  template <Transferable T, Transferable All>
  [[nodiscard]] Request start_gather(const T& mine, All&& all, int root) noexcept {
    return start_gather_bytes(message::bytes_of(mine), message::writable_bytes_of(all), root);
  }

  // In what follows a count is in elements, and the parts of several ranks lie one behind the other in order of rank,
  // without gaps. No two buffers of a call may overlap. Counts and sizes that do not fit each other answer invalid.

  /// As gather, with counts[i] elements from rank i. `all` and `counts` are looked at on the root only.
  template <Transferable T, Transferable All>
  Status gather_v(const T& mine, All&& all, std::span<const std::size_t> counts, int root) noexcept {
    return start_gather_v(mine, all, counts, root).wait().status;
  }
  template <Transferable T, Transferable All>
  [[nodiscard]] Request start_gather_v(const T& mine, All&& all, std::span<const std::size_t> counts,
                                       int root) noexcept {
    return start_gather_v_bytes(message::bytes_of(mine), message::writable_bytes_of(all),
                                {counts, sizeof(message::Element<T>)}, root);
  }

  /// The root's all[i * mine.size()] goes to rank i's `mine`; `all` is looked at on the root only.
  template <Transferable All, Transferable T>
  Status scatter(const All& all, T&& mine, int root) noexcept {
    return start_scatter(all, mine, root).wait().status;
  }
  template <Transferable All, Transferable T>
  [[nodiscard]] Request start_scatter(const All& all, T&& mine, int root) noexcept {
    return start_scatter_bytes(message::bytes_of(all), message::writable_bytes_of(mine), root);
  }
  /// As scatter, with counts[i] elements for rank i. `all` and `counts` are looked at on the root only.
  template <Transferable All, Transferable T>
  Status scatter_v(const All& all, std::span<const std::size_t> counts, T&& mine, int root) noexcept {
    return start_scatter_v(all, counts, mine, root).wait().status;
  }
  template <Transferable All, Transferable T>
  [[nodiscard]] Request start_scatter_v(const All& all, std::span<const std::size_t> counts, T&& mine,
                                        int root) noexcept {
    return start_scatter_v_bytes(message::bytes_of(all), {counts, sizeof(message::Element<T>)},
                                 message::writable_bytes_of(mine), root);
  }

  /// A gather whose result every rank has.
  template <Transferable T, Transferable All>
  Status all_gather(const T& mine, All&& all) noexcept {
    return start_all_gather(mine, all).wait().status;
  }
  template <Transferable T, Transferable All>
  [[nodiscard]] Request start_all_gather(const T& mine, All&& all) noexcept {
    return start_all_gather_bytes(message::bytes_of(mine), message::writable_bytes_of(all));
  }
  /// As all_gather, with counts[i] elements from rank i; all ranks give the same counts.
  template <Transferable T, Transferable All>
  Status all_gather_v(const T& mine, All&& all, std::span<const std::size_t> counts) noexcept {
    return start_all_gather_v(mine, all, counts).wait().status;
  }
  template <Transferable T, Transferable All>
  [[nodiscard]] Request start_all_gather_v(const T& mine, All&& all, std::span<const std::size_t> counts) noexcept {
    return start_all_gather_v_bytes(message::bytes_of(mine), message::writable_bytes_of(all),
                                    {counts, sizeof(message::Element<T>)});
  }

  /// Part i of `sent` goes to rank i, where it becomes part rank() of `received`. All parts are of one size, the same
  /// on all ranks.
  template <Transferable T, Transferable U>
  Status all_to_all(const T& sent, U&& received) noexcept {
    return start_all_to_all(sent, received).wait().status;
  }
  template <Transferable T, Transferable U>
  [[nodiscard]] Request start_all_to_all(const T& sent, U&& received) noexcept {
    return start_all_to_all_bytes(message::bytes_of(sent), message::writable_bytes_of(received),
                                  sizeof(message::Element<T>));
  }
  /// As all_to_all, with sent_counts[i] elements for rank i and received_counts[i] from it.
  template <Transferable T, Transferable U>
  Status all_to_all_v(const T& sent, std::span<const std::size_t> sent_counts, U&& received,
                      std::span<const std::size_t> received_counts) noexcept {
    return start_all_to_all_v(sent, sent_counts, received, received_counts).wait().status;
  }
  template <Transferable T, Transferable U>
  [[nodiscard]] Request start_all_to_all_v(const T& sent, std::span<const std::size_t> sent_counts, U&& received,
                                           std::span<const std::size_t> received_counts) noexcept {
    return start_all_to_all_v_bytes(message::bytes_of(sent), {sent_counts, sizeof(message::Element<T>)},
                                    message::writable_bytes_of(received),
                                    {received_counts, sizeof(message::Element<U>)});
  }

  // Reductions. The operation must be associative; it need not commute: operands stay in the order of ranks. How they
  // are combined depends on the number of ranks and of elements, and between hosts on which ranks share one, so the
  // same numbers give the same rounding.

  /// Combines values[i] of all ranks by `operation` into the root's `values`; the others' stay as they are.
  template <Transferable T, class Operation = std::plus<>>
  Status reduce(T&& values, int root, const Operation& operation = {}) noexcept {
    return start_reduce_bytes(message::writable_bytes_of(values), root, reduction<message::Element<T>>(operation))
        .wait()
        .status;
  }
  /// As reduce. `operation` is referred to until the request is complete: it must be an lvalue.
  template <Transferable T, class Operation>
  [[nodiscard]] Request start_reduce(T&& values, int root, const Operation& operation) noexcept {
    return start_reduce_bytes(message::writable_bytes_of(values), root, reduction<message::Element<T>>(operation));
  }
  template <Transferable T, class Operation>
  Request start_reduce(T&& values, int root, const Operation&& operation) = delete;

  /// In place: values[i] becomes the combination of those of ranks 0 to rank().
  template <Transferable T, class Operation = std::plus<>>
  Status scan(T&& values, const Operation& operation = {}) noexcept {
    return start_scan_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation), false)
        .wait()
        .status;
  }
  template <Transferable T, class Operation>
  [[nodiscard]] Request start_scan(T&& values, const Operation& operation) noexcept {
    return start_scan_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation), false);
  }
  template <Transferable T, class Operation>
  Request start_scan(T&& values, const Operation&& operation) = delete;

  /// In place: values[i] becomes the combination of those of ranks 0 to rank() - 1. Rank 0's stay as they are.
  template <Transferable T, class Operation = std::plus<>>
  Status exclusive_scan(T&& values, const Operation& operation = {}) noexcept {
    return start_scan_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation), true)
        .wait()
        .status;
  }
  template <Transferable T, class Operation>
  [[nodiscard]] Request start_exclusive_scan(T&& values, const Operation& operation) noexcept {
    return start_scan_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation), true);
  }
  template <Transferable T, class Operation>
  Request start_exclusive_scan(T&& values, const Operation&& operation) = delete;

  /// Combines values[i] of all ranks by `operation`, in place, so that every rank has the result.
  template <Transferable T, class Operation = std::plus<>>
  Status all_reduce(T&& values, const Operation& operation = {}) noexcept {
    return all_reduce_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation));
  }
  /// As all_reduce. `operation` is referred to until the request is complete: it must be an lvalue.
  template <Transferable T, class Operation>
  [[nodiscard]] Request start_all_reduce(T&& values, const Operation& operation) noexcept {
    return start_all_reduce_bytes(message::writable_bytes_of(values), reduction<message::Element<T>>(operation));
  }
  template <Transferable T, class Operation>
  Request start_all_reduce(T&& values, const Operation&& operation) = delete;
  template <Transferable T>
  [[nodiscard]] Request start_all_reduce(T&& values) noexcept {
    static constexpr std::plus<> plus;
    return start_all_reduce(values, plus);
  }

  /// A communicator of the same ranks. Collective.
  [[nodiscard]] Communicator duplicate();
  /// A communicator of the ranks that give the same `color`, ordered by `key`, then by rank here. Collective. A rank
  /// that gives a negative color gets nothing.
  [[nodiscard]] std::optional<Communicator> split(int color, int key);

 private:
  friend class PersistentRequest;
  explicit Communicator(std::shared_ptr<message::Context> context) noexcept;
  Request start_send_blocks(const message::Blocks& blocks, int destination, int tag, SendMode mode) noexcept;
  Request start_receive_blocks(const message::Blocks& blocks, int source, int tag) noexcept;
  Status all_reduce_bytes(std::span<std::byte> values, message::Reduction reduction) noexcept;
  Request start_all_reduce_bytes(std::span<std::byte> values, message::Reduction reduction) noexcept;
  Request start_reduce_bytes(std::span<std::byte> values, int root, message::Reduction reduction) noexcept;
  Request start_scan_bytes(std::span<std::byte> values, message::Reduction reduction, bool exclusive) noexcept;
  Request start_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all, message::Counts counts,
                               int root) noexcept;
  Request start_scatter_bytes(std::span<const std::byte> all, std::span<std::byte> mine, int root) noexcept;
  Request start_scatter_v_bytes(std::span<const std::byte> all, message::Counts counts, std::span<std::byte> mine,
                                int root) noexcept;
  Request start_all_gather_bytes(std::span<const std::byte> mine, std::span<std::byte> all) noexcept;
  Request start_all_gather_v_bytes(std::span<const std::byte> mine, std::span<std::byte> all,
                                   message::Counts counts) noexcept;
  Request start_all_to_all_bytes(std::span<const std::byte> sent, std::span<std::byte> received,
                                 std::size_t element_bytes) noexcept;
  Request start_all_to_all_v_bytes(std::span<const std::byte> sent, message::Counts sent_counts,
                                   std::span<std::byte> received, message::Counts received_counts) noexcept;

  template <class T, class Operation>
  static message::Reduction reduction(const Operation& operation) noexcept {
    static_assert(alignof(T) <= alignof(std::max_align_t), "parts of reductions lie in memory of ordinary alignment");
    static_assert(std::is_invocable_r_v<T, const Operation&, const T&, const T&>,
                  "an operation takes two elements and answers one; an object's operator() must be const");
    // A function's address is no const void*, but can be turned into one and back (POSIX, dlsym).
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

template <Transferable T>
PersistentRequest Communicator::prepare_send(const T& values, int destination, int tag, SendMode mode) noexcept {
  const auto bytes = message::bytes_of(values);
  return {*this, message::blocks_of({const_cast<std::byte*>(bytes.data()), bytes.size()}), destination, tag, mode};
}
template <Transferable T>
PersistentRequest Communicator::prepare_receive(T&& values, int source, int tag) noexcept {
  return {*this, message::blocks_of(message::writable_bytes_of(values)), source, tag, std::nullopt};
}
inline bool PersistentRequest::start() noexcept {
  if (!request_.complete()) return false;
  request_ = send_ ? communicator_->start_send_blocks(blocks_, peer_, tag_, *send_)
                   : communicator_->start_receive_blocks(blocks_, peer_, tag_);
  return true;
}

}  // namespace tonari
