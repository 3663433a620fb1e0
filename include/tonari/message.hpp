#pragma once

#include <tonari/job.hpp>
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

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;
inline constexpr int tag_max = 0x7fffffff;

/// When a send counts as done.
enum class SendMode : std::uint8_t {
  standard,     ///< When the buffer may be used again. The message may still wait in memory of the runtime.
  when_posted,  ///< When the matching receive was found posted and the data lie in its buffer, with no copy between.
};

/// What is known of a message: who sent it, with which tag, how long it is.
struct Envelope {
  int source = any_source;  ///< Rank in the communicator.
  int tag = any_tag;
  std::size_t bytes = 0;  ///< Length of the message as it was sent.
};

/// What became of an operation. For sends `envelope` is empty. When truncated, `envelope.bytes` is the full length.
struct Result {
  Status status = Status::ok;
  Envelope envelope;
};

namespace message {
struct Operation;
struct Requests;
class Context;
/// Folds `count` elements of `in` into `inout`: inout[i] = operation(inout[i], in[i]).
using Fold = void (*)(void* inout, const void* in, std::size_t count, const void* operation);
struct Reduction {
  Fold fold;
  std::size_t element_bytes;
  const void* operation;
};
}  // namespace message

/// A started operation. It owns nothing of the user's: the buffers stay the caller's, and may not be touched (for a
/// send: changed) until the request is complete. Move-only. Destroying an incomplete request waits for it; but while an
/// exception unwinds the stack, a receive that no message has met is given up, as is a collective that waits for one.
/// Threads: any thread may wait for it, one at a time.
class Request {
 public:
  Request() noexcept;  ///< Complete, with Status::ok.
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;
  ~Request();

  /// Waits until it is complete and answers how it went. Calling it again answers the same.
  Result wait() noexcept;
  /// Makes progress once; the result if it is complete, else nothing. Does not block.
  std::optional<Result> test() noexcept;
  /// True once wait() or test() has seen it complete. Makes no progress.
  [[nodiscard]] bool complete() const noexcept;

 private:
  friend struct message::Requests;
  friend std::size_t wait_any(std::span<Request> requests) noexcept;
  friend Status wait_all(std::span<Request> requests) noexcept;
  explicit Request(message::Operation* operation) noexcept;
  explicit Request(Result result) noexcept;

  message::Operation* operation_ = nullptr;  // null when complete
  Result result_;
};

/// Waits until one request that was not complete before the call is complete, and answers its index. Answers
/// requests.size() when all were complete already.
std::size_t wait_any(std::span<Request> requests) noexcept;
/// Waits for all. Answers ok, or the first failure in order of the span.
Status wait_all(std::span<Request> requests) noexcept;

namespace message {
template <class T>
inline constexpr bool is_reference_wrapper = false;
template <class T>
inline constexpr bool is_reference_wrapper<std::reference_wrapper<T>> = true;
/// Its bytes are the value itself, and tell another process the same.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
                !std::is_null_pointer_v<T> && !std::ranges::view<T> && !std::input_or_output_iterator<T> &&
                !is_reference_wrapper<T>;
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

  /// Combines values[i] of all ranks by `operation`, in place, so that every rank has the result. The operation must be
  /// associative; it need not commute. The order of combining depends on the number of ranks alone, so the same number
  /// gives the same rounding.
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
  explicit Communicator(std::shared_ptr<message::Context> context) noexcept;
  Status all_reduce_bytes(std::span<std::byte> values, message::Reduction reduction) noexcept;
  Request start_all_reduce_bytes(std::span<std::byte> values, message::Reduction reduction) noexcept;

  template <class T, class Operation>
  static message::Reduction reduction(const Operation& operation) noexcept {
    return {[](void* inout, const void* in, std::size_t count, const void* op) {
              auto* left = static_cast<T*>(inout);
              const auto* right = static_cast<const T*>(in);
              for (std::size_t i = 0; i < count; ++i) left[i] = (*static_cast<const Operation*>(op))(left[i], right[i]);
            },
            sizeof(T), &operation};
  }

  std::shared_ptr<message::Context> context_;
};

}  // namespace tonari
