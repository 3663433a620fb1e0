#include "mpi/request.hpp"

#include "message/message_runtime.hpp"
#include "message/requests.hpp"
#include "mpi/checks.hpp"
#include "mpi/process.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <sched.h>

#include <new>
#include <utility>

namespace tonari::mpi {

namespace {

using Kind = Request::Kind;

/// A request that other files of the front make.
class Called final : public Conduct {
 public:
  Called(std::function<tonari::Request()> start, std::function<void()> on_completion)
      : start_(std::move(start)), on_completion_(std::move(on_completion)) {}
  Next go_on(Request& request) override {
    request.result = request.running.wait();
    if (request.result.status == Status::ok && on_completion_ != nullptr) on_completion_();
    return Next::complete;
  }
  void start(Request& request) override { request.running = start_(); }

 private:
  std::function<tonari::Request()> start_;
  std::function<void()> on_completion_;
};

Request* make_completed() {
  auto* const request = new Request(Kind::send, nullptr);
  request->is_complete = true;
  return request;
}
// Lives until the process ends.
Request* const completed = make_completed();

}  // namespace

Conduct::Next Conduct::go_on(Request& request) {
  request.result = request.running.wait();
  return Next::complete;
}

void Conduct::block(Request& /*request*/) { make_progress_and_yield(); }

void Conduct::describe(const Request& request, MPI_Status& status) {
  write_status(&status, request.result.value);
  set_cancelled(status, request.result.status == Status::cancelled);
}

MPI_Request make_request(Comm& comm, tonari::Request started, std::function<void()> on_completion) {
  if (on_completion == nullptr && started.complete() && started.wait().status == Status::ok) return completed_request();
  auto* const request = new Request(Kind::collective, &comm, std::move(started));
  request->function = current_function;
  if (on_completion != nullptr) request->conduct = std::make_unique<Called>(nullptr, std::move(on_completion));
  return request;
}

MPI_Request make_persistent(Comm& comm, std::function<tonari::Request()> start, std::function<void()> on_completion) {
  auto request = std::make_unique<Request>(Kind::collective, &comm);
  request->function = current_function;
  request->conduct = std::make_unique<Called>(std::move(start), std::move(on_completion));
  request->make_persistent();
  return request.release();
}

MPI_Request completed_request() noexcept { return completed; }

void make_progress() noexcept {
  message::MessageRuntime& runtime = Process::current()->runtime();
  runtime.engine().progress();
  (void)runtime.advance_stepwise(fabric::Step::waiting);
}

void let_others_run() noexcept {
  if (Process::current()->runtime().engine().shared_cores()) ::sched_yield();
}

void make_progress_and_yield() noexcept {
  make_progress();
  ::sched_yield();
}

}  // namespace tonari::mpi

bool MPI_ABI_Request::advance() noexcept {
  using tonari::mpi::Conduct;
  using tonari::mpi::Failure;
  try {
    while (!is_complete) {
      if (is_running() && !tonari::message::Requests::advance(running)) return false;
      if (conduct == nullptr) result = tonari::message::Requests::result(running);
      const Conduct::Next next = conduct == nullptr ? Conduct::Next::complete : conduct->go_on(*this);
      if (next == Conduct::Next::later) return false;
      is_complete = next == Conduct::Next::complete;
    }
  } catch (const Failure& why) {
    failure = std::make_unique<Failure>(why);
    is_complete = true;
  } catch (const std::exception& why) {
    failure = std::make_unique<Failure>(MPI_ERR_OTHER, why.what());
    is_complete = true;
  }
  return true;
}
