#pragma once

#include "base/spare_memory.hpp"
#include "message/requests.hpp"
#include "mpi/comm.hpp"
#include "mpi/failure.hpp"
#include "mpi/object.hpp"
#include "mpi/predefined.hpp"

#include <tonari/request.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tonari::mpi {

using Request = MPI_ABI_Request;
enum class Function : unsigned short;  // names.hpp

/// The part of requests that do more than wait for one operation of the runtime. The calls come from the thread that
/// waits for the request or tests it. A Failure that one throws becomes the result of the request.
class Conduct {
 public:
  Conduct() = default;
  Conduct(Conduct&&) = delete;
  virtual ~Conduct() = default;

  enum class Next {
    wait,      ///< `running` is the next operation to wait for.
    later,     ///< Something else must happen first: ask again.
    complete,  ///< The request is complete.
  };
  /// Called when `running` is complete. Sets `result` if the request is complete.
  virtual Next go_on(Request& request);
  /// Starts a persistent request again, which is complete: puts its first operation into `running`.
  virtual void start(Request& /*request*/) {}
  /// Waits because go_on() has returned later; it need not wait long enough.
  virtual void block(Request& request);
  /// Writes the status of a complete request. The default makes it from `result`.
  virtual void describe(const Request& request, MPI_Status& status);
  virtual void cancel(Request& /*request*/) {}
  /// False as long as a request that the program has freed may not be destroyed. A complete or inactive one usually
  /// may.
  virtual bool may_be_destroyed() { return true; }
  /// Called once, when the program cannot use the request any more.
  virtual void release(Request& /*request*/) {}
};

}  // namespace tonari::mpi

/// A started operation, or a persistent one.
///
/// Life:    until it is complete, unless it is persistent; then until the program frees it.
/// Threads: one at a time.
struct MPI_ABI_Request : tonari::mpi::Object {
  static constexpr std::uint32_t word = 0x72657175;
  enum class Kind : std::uint8_t { send, receive, collective, generalised, partitioned_send, partitioned_receive };

  MPI_ABI_Request(Kind what, tonari::mpi::Comm* of_comm) noexcept : Object(word), comm(of_comm), kind(what) {}
  MPI_ABI_Request(Kind what, tonari::mpi::Comm* of_comm, tonari::Request started) noexcept
      : Object(word), running(std::move(started)), comm(of_comm), kind(what) {}
  static void* operator new(std::size_t /*bytes*/) { return tonari::SpareMemory<MPI_ABI_Request>::take(); }
  static void operator delete(void* memory) noexcept { tonari::SpareMemory<MPI_ABI_Request>::give(memory); }

  /// Makes a new request persistent, and inactive.
  void make_persistent() noexcept {
    is_persistent = true;
    is_active = false;
    is_complete = true;
  }
  /// True if `running` is not known to be complete.
  [[nodiscard]] bool is_running() const noexcept { return tonari::message::Requests::operation(running) != nullptr; }
  /// Looks without making progress: returns true if the request is complete. Then `result` is set, or `failure`.
  bool advance() noexcept;

  std::unique_ptr<tonari::mpi::Conduct> conduct;  ///< Null if the request is complete with its first operation.
  tonari::Request running;                        ///< The operation that it waits for now.
  tonari::Result<tonari::Envelope> result;        ///< The result of a complete request.
  tonari::mpi::Ref<tonari::mpi::Comm> comm;       ///< Its error handler hears of errors. Null: MPI_COMM_SELF's does.
  std::span<const std::byte> buffer;              ///< The data of a message, see Buffer::place().
  std::unique_ptr<tonari::mpi::Failure> failure;  ///< Thrown by `conduct`.
  Kind kind;
  tonari::mpi::Function function{};  ///< The function that started a collective, for `tonari status`.
  bool is_persistent = false;
  bool is_active = true;     ///< False between the completion of a persistent request and its next start.
  bool is_complete = false;  ///< Known to be complete.
};

namespace tonari::mpi {

/// Returns the request that a handle names. Null if the handle is MPI_REQUEST_NULL or wrong.
inline Request* find(MPI_Request handle) noexcept { return find_made(handle); }

/// Returns the handle of a started operation, such as a collective. `on_completion` is called by the thread that waits
/// for it, once, after the operation has ended without an error. Both may throw Failure.
MPI_Request make_request(Comm& comm, tonari::Request started, std::function<void()> on_completion = {});
/// Returns the handle of a persistent operation, which is inactive. `start` is called for each MPI_Start.
MPI_Request make_persistent(Comm& comm, std::function<tonari::Request()> start,
                            std::function<void()> on_completion = {});
/// Returns the handle of an operation that is complete without an error and has an empty status. All such requests are
/// one object, which lives for ever: programs may wait for it, test, free and cancel it like any other.
MPI_Request completed_request() noexcept;

/// A failure that a communicator's error handler hears of although it is no parameter of the function.
struct CommFailure : Failure {
  CommFailure(int why, const std::string& text, Ref<Comm> of_comm) : Failure(why, text), comm(std::move(of_comm)) {}
  Ref<Comm> comm;
};

}  // namespace tonari::mpi
