#include "functions.hpp"
#include "message/requests.hpp"
#include "mpi/requests/awaited.hpp"
#include "mpi/requests/completion.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <array>
#include <memory>
#include <span>

// Functions that wait for requests.
namespace tonari::mpi {

namespace {

void wait_for(Request& request) {
  while (!request.advance()) {
    if (request.is_running()) {
      const Awaiting awaiting(request);
      (void)request.running.wait();
    } else {
      request.conduct->block(request);
    }
  }
}

// The operations that the requests of a program's array wait for. Few need no memory of the allocator.
class Running {
 public:
  explicit Running(const Handles& handles)
      : long_(handles.size() > short_.size() ? new tonari::Request*[handles.size()] : nullptr) {}
  void clear() noexcept { count_ = 0; }
  void add(Request& request) noexcept { at()[count_++] = &request.running; }
  [[nodiscard]] std::span<tonari::Request* const> all() noexcept { return {at(), count_}; }

 private:
  tonari::Request** at() noexcept { return long_ != nullptr ? long_.get() : short_.data(); }

  std::array<tonari::Request*, 32> short_;
  std::unique_ptr<tonari::Request*[]> long_;
  std::size_t count_ = 0;
};

void wait_for_all(const Handles& handles) {
  Running running(handles);
  for (bool is_first = true;; is_first = false) {
    bool is_waiting = false;
    bool may_sleep = true;  // false if a request waits for something that does not wake this thread
    running.clear();
    for (std::size_t i = 0; i < handles.size(); ++i) {
      Request* const request = handles.active(i);
      // At first looks at no operation: the wait looks at all of them.
      const bool is_running = is_first && request != nullptr && request->is_running();
      if (request == nullptr || (!is_running && request->advance())) continue;
      is_waiting = true;
      may_sleep = may_sleep && request->is_running();
      running.add(*request);
    }
    if (!is_waiting) return;
    if (may_sleep) {
      const Awaiting awaiting(handles);
      message::wait_all(running.all());
    } else {
      make_progress_and_yield();
    }
  }
}

// Returns the index of a complete request, or the number of handles if no request is active.
std::size_t wait_for_one(const Handles& handles) {
  Running running(handles);
  for (;;) {
    bool is_waiting = false;
    bool may_sleep = true;  // false if a request waits for something that does not wake this thread
    running.clear();
    for (std::size_t i = 0; i < handles.size(); ++i) {
      Request* const request = handles.active(i);
      if (request == nullptr) continue;
      if (request->advance()) return i;
      is_waiting = true;
      may_sleep = may_sleep && request->is_running();
      running.add(*request);
    }
    if (!is_waiting) return handles.size();
    if (may_sleep) {
      const Awaiting awaiting(handles);
      message::wait_any(running.all());
    } else {
      make_progress_and_yield();
    }
  }
}

}  // namespace

void wait(MPI_Request* request, MPI_Status* status) {
  Request* const active = find_active(*request);
  if (active == nullptr) return write_empty_status(status);
  wait_for(*active);
  end(*request, *active, status);
}

void waitall(int count, MPI_Request* array_of_requests, MPI_Status* array_of_statuses) {
  const Handles handles(count, array_of_requests);
  wait_for_all(handles);
  Statuses statuses(array_of_statuses);
  for (std::size_t i = 0; i < handles.size(); ++i) statuses.end(array_of_requests[i]);
  statuses.raise();
}

void waitany(int count, MPI_Request* array_of_requests, int* indx, MPI_Status* status) {
  const Handles handles(count, array_of_requests);
  const std::size_t i = wait_for_one(handles);
  if (i == handles.size()) {
    *indx = MPI_UNDEFINED;
    return write_empty_status(status);
  }
  *indx = static_cast<int>(i);
  end(array_of_requests[i], *handles.active(i), status);
}

void waitsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
              MPI_Status* array_of_statuses) {
  const Handles handles(incount, array_of_requests);
  if (wait_for_one(handles) == handles.size()) {
    *outcount = MPI_UNDEFINED;
    return;
  }
  end_complete(handles, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

}  // namespace tonari::mpi
