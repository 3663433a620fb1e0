#include "functions.hpp"
#include "message/requests.hpp"
#include "mpi/process.hpp"
#include "mpi/request.hpp"
#include "mpi/requests/freed.hpp"
#include "mpi/status.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>

// Requests for operations of the program, which says itself when they are complete.
namespace tonari::mpi {

namespace {

using message::Operation;
using message::Requests;

// A callback of the program returns an error code, which becomes the result of the request.
void check_callback(int code, const char* name) {
  if (code != MPI_SUCCESS) throw Failure(code, fmt::format("the callback {} returned error code {}", name, code));
}

class Generalised final : public Conduct {
 public:
  Generalised(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
              MPI_Grequest_cancel_function* cancel_fn, void* state) noexcept
      : query_(query_fn), free_(free_fn), cancel_(cancel_fn), state_(state) {}

  // The request waits for an operation that complete() ends.
  void start(Request& request) override {
    request.running = Requests::foreign(Process::current()->runtime(), operation_);
  }
  void describe(const Request& /*request*/, MPI_Status& status) override {
    write_empty_status(&status);
    check_callback(query_(state_, &status), "query_fn");
  }
  void cancel(Request& /*request*/) override {
    const bool is_complete = phase_.load(std::memory_order_acquire) != Phase::running;
    check_callback(cancel_(state_, is_complete ? 1 : 0), "cancel_fn");
  }
  void release(Request& /*request*/) override { check_callback(free_(state_), "free_fn"); }

  // Returns true if the program has freed the request already: the caller then destroys it. Otherwise another thread
  // may have destroyed it by now.
  bool complete() noexcept {
    Operation& operation = *operation_;
    const bool was_freed = phase_.exchange(Phase::complete, std::memory_order_acq_rel) == Phase::freed;
    Requests::complete_foreign(operation, Status::ok);
    return was_freed;
  }
  // Returns true if the operation is complete already: the caller then destroys the request.
  bool free() noexcept { return phase_.exchange(Phase::freed, std::memory_order_acq_rel) == Phase::complete; }

 private:
  enum class Phase { running, complete, freed };
  std::atomic<Phase> phase_{Phase::running};
  Operation* operation_ = nullptr;
  MPI_Grequest_query_function* query_;
  MPI_Grequest_free_function* free_;
  MPI_Grequest_cancel_function* cancel_;
  void* state_;
};

void destroy(Request* request) {
  const std::unique_ptr<Request> owned(request);
  owned->conduct->release(*owned);
}

}  // namespace

void free_generalised(Request& request) {
  if (static_cast<Generalised&>(*request.conduct).free()) destroy(&request);
}

void grequest_start(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                    MPI_Grequest_cancel_function* cancel_fn, void* extra_state, MPI_Request* request) {
  if (query_fn == nullptr || free_fn == nullptr || cancel_fn == nullptr) {
    throw Failure(MPI_ERR_ARG, "a callback is a null pointer");
  }
  auto made = std::make_unique<Request>(Request::Kind::generalised, nullptr);
  made->conduct = std::make_unique<Generalised>(query_fn, free_fn, cancel_fn, extra_state);
  made->conduct->start(*made);
  *request = made.release();
}

void grequest_complete(MPI_Request request) {
  Request* const found = find(request);
  if (found == nullptr || found->kind != Request::Kind::generalised) {
    throw Failure(MPI_ERR_REQUEST, "request is no generalised one: MPI_Grequest_start makes them");
  }
  if (static_cast<Generalised&>(*found->conduct).complete()) destroy(found);
}

}  // namespace tonari::mpi
