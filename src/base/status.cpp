#include <tonari/result.hpp>
#include <tonari/status.hpp>

#include <string>

namespace tonari {

std::string_view to_string(Status status) noexcept {
  switch (status) {
    case Status::ok: return "ok";
    case Status::again: return "again";
    case Status::truncated: return "truncated";
    case Status::invalid: return "invalid";
    case Status::bounds: return "bounds";
    case Status::bad_address: return "bad_address";
    case Status::peer_gone: return "peer_gone";
    case Status::cancelled: return "cancelled";
    case Status::no_memory: return "no_memory";
    case Status::denied: return "denied";
    case Status::timed_out: return "timed_out";
    case Status::holder_died: return "holder_died";
  }
  return "unknown";
}

std::string_view explain(Status status) noexcept {
  switch (status) {
    case Status::ok: return "the call succeeded";
    case Status::again: return "there was no room, so nothing was started: make progress, then call again";
    case Status::truncated:
      return "the message was longer than the buffer and its end was lost: probe for its length, or pass a larger "
             "buffer";
    case Status::invalid: return "an argument was out of range (rank, tag, root or size): correct the call";
    case Status::bounds: return "the range exceeds the memory that it names: check offset and length against the size";
    case Status::bad_address:
      return "the buffer was not memory that the process may read or write: check pointer and length";
    case Status::peer_gone: return "the peer died or left the job: it cannot be reached any more";
    case Status::cancelled: return "the operation was cancelled before it matched: nothing was transferred";
    case Status::no_memory: return "the system refused the memory that the call needed: free some, or raise the limit";
    case Status::denied:
      return "the owner of the memory gave this rank no right to do this: see WindowOptions, or request fewer rights";
    case Status::timed_out: return "the time limit passed before the lock was free: try again, or wait longer";
    case Status::holder_died:
      return "the lock is now held, but its previous holder died while holding it: the protected data may be "
             "inconsistent, repair them";
  }
  return "unknown status: the number did not come from tonari";
}

void detail::throw_error(Status status, std::string_view what) {
  const std::string cause(explain(status));
  throw Error(status, what.empty() ? cause : std::string(what) + ": " + cause);
}

}  // namespace tonari
