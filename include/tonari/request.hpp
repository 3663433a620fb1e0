#pragma once

#include <tonari/status.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace tonari {

inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;
inline constexpr int tag_max = 0x7fffffff;

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
}  // namespace message

/// A started operation. It owns nothing of the user's: the buffers stay the caller's, and may not be touched (for a
/// send: changed) until the request is complete. Move-only. Destroying an incomplete request waits for it; but while an
/// exception unwinds the stack, a receive that no message has met is given up, as is a collective that waits for one.
/// Threads: any thread may wait for it, one at a time.
class Request {
 public:
  Request() noexcept = default;  ///< Complete, with Status::ok.
  Request(Request&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)), result_(other.result_) {}
  Request& operator=(Request&& other) noexcept;
  ~Request() {
    if (operation_ != nullptr) abandon();
  }

  /// Waits until it is complete and answers how it went. Calling it again answers the same.
  Result wait() noexcept;
  /// Makes progress once; the result if it is complete, else nothing. Does not block.
  std::optional<Result> test() noexcept;
  /// True once wait() or test() has seen it complete. Makes no progress.
  [[nodiscard]] bool complete() const noexcept;
  /// Takes back a receive that has met no message yet: true, and it is complete with Status::cancelled. False for any
  /// other operation and for one that has met its message, which goes on as before.
  bool cancel() noexcept;

 private:
  friend struct message::Requests;
  friend std::size_t wait_any(std::span<Request> requests) noexcept;
  friend Status wait_all(std::span<Request> requests) noexcept;
  explicit Request(message::Operation* operation) noexcept : operation_(operation) {}
  explicit Request(Result result) noexcept : result_(result) {}
  void abandon() noexcept;

  message::Operation* operation_ = nullptr;  // null when complete
  Result result_;
};

/// Waits until one request that was not complete before the call is complete, and answers its index. Answers
/// requests.size() when all were complete already. The requests must be of one Job.
std::size_t wait_any(std::span<Request> requests) noexcept;
/// Waits for all, which must be of one Job. Answers ok, or the first failure in order of the span.
Status wait_all(std::span<Request> requests) noexcept;

}  // namespace tonari
