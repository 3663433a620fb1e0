#include "functions.hpp"
#include "message/requests.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/requests/freed.hpp"
#include "mpi/requests/progress.hpp"

#include <mutex>
#include <utility>
#include <vector>

// Freeing and cancelling requests.
namespace tonari::mpi {

namespace {

bool may_be_destroyed(Request& request) {
  return request.advance() && (request.conduct == nullptr || request.conduct->may_be_destroyed());
}

void withdraw(Request& request) {
  if (request.conduct != nullptr) return request.conduct->cancel(request);
  if (request.kind == Request::Kind::receive) (void)request.running.cancel();
}

class Freed {
 public:
  void add(std::unique_ptr<Request> request) {
    const std::lock_guard guard(mutex_);
    // Looks at all of them once each time that their number has doubled, so that the cost of each is constant.
    if (requests_.size() >= looks_at_) {
      std::erase_if(requests_, [](const auto& each) { return may_be_destroyed(*each); });
      looks_at_ = 2 * requests_.size() + 16;
    }
    requests_.push_back(std::move(request));
  }
  void end() {
    const std::lock_guard guard(mutex_);
    for (const auto& each : requests_) {
      withdraw(*each);
      while (!may_be_destroyed(*each)) make_progress_and_yield();
    }
    requests_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> requests_;
  std::size_t looks_at_ = 16;
};

Freed& freed() {
  static Freed& one = *new Freed;  // lives until the process ends, which must not wait for messages
  return one;
}

Request& find_made_request(MPI_Request handle) {
  Request* const request = find(handle);
  if (request == nullptr) fail_handle(MPI_ERR_REQUEST, "request", "request", handle);
  return *request;
}

}  // namespace

void end_freed() { freed().end(); }

void request_free(MPI_Request* request) {
  Request& freed_one = find_made_request(*request);
  *request = MPI_REQUEST_NULL;
  if (&freed_one == completed_request()) return;
  if (freed_one.kind == Request::Kind::generalised) return free_generalised(freed_one);
  std::unique_ptr<Request> owned(&freed_one);
  const bool is_one_message = owned->conduct == nullptr || owned->is_persistent;
  if (is_one_message && (owned->kind == Request::Kind::send || owned->kind == Request::Kind::receive)) {
    return message::Requests::detach(owned->running);
  }
  if (!may_be_destroyed(*owned)) freed().add(std::move(owned));
}

void cancel(MPI_Request* request) {
  Request& asked = find_made_request(*request);
  const bool is_told = asked.kind == Request::Kind::generalised;  // its callback hears also that it is complete
  if (!asked.is_active || (!is_told && asked.advance())) return;
  switch (asked.kind) {
    case Request::Kind::send: return;  // it goes on: a message that has left cannot be withdrawn
    case Request::Kind::receive:
    case Request::Kind::generalised: return withdraw(asked);
    default: throw CommFailure(MPI_ERR_REQUEST, "collectives and partitioned messages cannot be cancelled", asked.comm);
  }
}

}  // namespace tonari::mpi
