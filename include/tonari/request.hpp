#pragma once

#include <tonari/rank.hpp>
#include <tonari/result.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace tonari {

/// The header of a message: its sender, its tag and its length.
struct Envelope {
  Rank source = Rank::any;  ///< Rank in the communicator.
  Tag tag = Tag::any;
  std::size_t bytes = 0;  ///< Length of the message as it was sent, also if it was truncated.

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

namespace message {
struct Operation;
struct Requests;
}  // namespace message

/// A started operation.
///
/// Buffers:  stay the caller's. Until the request is complete the caller must not touch the buffer of a receive and not
///           change the buffer of a send.
/// Progress: made inside every call of the library by any thread of this rank. While no thread of the rank is in the
///           library, the service thread makes it, unless TONARI_SERVICE_THREAD=off. Progress matches messages. Only
///           the thread that waits for a request or tests it copies its payload; the peer or the network may copy
///           that of a long message. A collective, or a layout, advances only while that thread waits for something
///           or tests: call test() now and then to overlap it with computing.
/// Life:     move-only. Destroying an incomplete request, or assigning to it, waits for it. While an exception unwinds
///           the stack, the destructor instead gives up a receive that has met no message, and a collective that
///           waits for one.
/// Threads:  any thread may wait for it or test it, one at a time.
class [[nodiscard]] Request {
 public:
  /// Complete, with Status::ok.
  Request() noexcept = default;
  Request(Request&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)), result_(other.result_) {}
  Request& operator=(Request&& other) noexcept;
  ~Request() {
    if (operation_ != nullptr) abandon();
  }

  /// Waits until the operation is complete and returns its result: every status of the blocking form. The envelope of a
  /// receive is its message's; that of a send or a collective is empty. Further calls return the same.
  Result<Envelope> wait() noexcept;
  /// Makes progress once; returns the result if the operation is complete, otherwise nothing. Does not block.
  [[nodiscard]] std::optional<Result<Envelope>> test() noexcept;
  /// True once wait() or test() has seen the operation complete. Makes no progress.
  [[nodiscard]] bool complete() const noexcept;
  /// Withdraws a receive that has met no message yet: returns true, and the request is complete with
  /// Status::cancelled. Returns false for any other operation, and for a receive that has met its message: it goes on.
  bool cancel() noexcept;

 private:
  friend struct message::Requests;
  explicit Request(message::Operation* operation) noexcept : operation_(operation) {}
  explicit Request(Result<Envelope> result) noexcept : result_(result) {}
  void abandon() noexcept;

  message::Operation* operation_ = nullptr;  // null when complete
  Result<Envelope> result_;
};

/// Waits until one request that was incomplete before the call is complete, with any status, and returns its index:
/// its wait() then returns at once. Returns requests.size() if all were complete already. The requests must belong to
/// one Job.
[[nodiscard]] std::size_t wait_any(std::span<Request> requests) noexcept;
/// Waits until at least one request that was incomplete before the call is complete. Writes the indices of all that are
/// complete by then to the start of `completed`, which must have room for one index per request, and returns their
/// number: 0 if all requests were complete before. The requests must belong to one Job.
[[nodiscard]] std::size_t wait_some(std::span<Request> requests, std::span<std::size_t> completed) noexcept;
/// Waits for all requests, which must belong to one Job. Returns ok, or the first failure in the order of the span.
Status wait_all(std::span<Request> requests) noexcept;

// The same without waiting. Each makes progress with all requests, and looks at each once or twice.

/// Returns what wait_any() would return at once, otherwise nothing.
[[nodiscard]] std::optional<std::size_t> test_any(std::span<Request> requests) noexcept;
/// Returns what wait_some() would return at once; 0 also if no request that was incomplete before is complete.
[[nodiscard]] std::size_t test_some(std::span<Request> requests, std::span<std::size_t> completed) noexcept;
/// Returns what wait_all() would return at once. If not all requests are complete it returns nothing, and none becomes
/// complete by it.
[[nodiscard]] std::optional<Status> test_all(std::span<Request> requests) noexcept;

}  // namespace tonari
