#include "message/requests.hpp"

#include "message/message_runtime.hpp"
#include "message/schedule.hpp"
#include "message/waiting.hpp"

#include <atomic>
#include <exception>
#include <utility>

namespace tonari {

using fabric::Step;
using message::Operation;
using message::Requests;

namespace message {

void Requests::settle(Request& request) noexcept {
  Operation* operation = std::exchange(request.operation_, nullptr);
  request.result_ = operation->result();
  operation->call.context->runtime().free_operation(operation);
}

void Requests::give_up(Request& request) noexcept {
  Operation& operation = *request.operation_;
  MessageRuntime& runtime = operation.call.context->runtime();
  runtime.adopt(operation);
  for_each_leaf(operation, [&runtime](Operation& leaf) { (void)runtime.cancel(leaf); });
  if (operation.call.kind == Operation::Kind::collective) operation.schedule->give_up();
}

namespace {

job::Wait wait_of(const Operation& operation) noexcept {
  switch (operation.call.kind) {
    case Operation::Kind::send: return job::Wait::send;
    case Operation::Kind::collective: return operation.schedule->what();
    default: return job::Wait::receive;
  }
}

// Waits until one of several requests, or all, are complete. For all, the changes of their operations are counted: a
// step looks only as far as it must to find the new changes, which usually belong to the first requests.
struct WaitForSeveral {
  MessageRuntime& runtime;
  std::span<Request> requests;
  bool all;
  std::size_t index = 0;                  // index of a complete request
  std::atomic<std::uint64_t> changes{0};  // changes of all operations, counted by the threads that make them
  std::uint64_t changes_seen = 0;
  std::size_t first = 0;      // all requests before it are complete
  bool looks_at_each = true;  // true at first, and while an operation must be retried or is a collective

  Step step() noexcept {
    const std::uint64_t now = changes.load(std::memory_order_acquire);
    std::uint64_t new_ones = now - changes_seen;
    changes_seen = now;
    const bool each = std::exchange(looks_at_each, !all);
    bool retry = false;
    for (std::size_t i = first; i < requests.size() && (each || new_ones != 0); ++i) {
      Operation* operation = Requests::operation(requests[i]);
      if (operation == nullptr) continue;
      // A receive can advance only after a counted change; a send may find room at any time.
      const bool may_move = each && operation->call.kind != Operation::Kind::receive;
      if (!may_move && !operation->ready()) continue;
      if (new_ones != 0) --new_ones;
      const Step step = operation->call.context->runtime().advance(*operation);
      if (step == Step::done) {
        Requests::settle(requests[i]);
        index = i;
        if (!all) return Step::done;
      } else {
        retry = retry || step == Step::retry;
        looks_at_each = looks_at_each || step == Step::retry || operation->call.kind == Operation::Kind::collective;
      }
    }
    while (first < requests.size() && Requests::operation(requests[first]) == nullptr) ++first;
    if (first == requests.size()) return Step::done;
    return runtime.advance_stepwise(retry ? Step::retry : Step::waiting);
  }
  [[nodiscard]] bool ready() const noexcept {
    if (changes.load(std::memory_order_acquire) != changes_seen) return true;
    if (!looks_at_each) return runtime.stepwise_ready();
    for (const Request& request : requests) {
      const Operation* operation = Requests::operation(request);
      if (operation != nullptr && operation->ready()) return true;
    }
    return runtime.stepwise_ready();
  }
  bool attach(fabric::Sleeper* sleeper) noexcept {
    bool none_ready = true;
    for_each([&](Operation& leaf) {
      Operation* const one[] = {&leaf};
      none_ready = leaf.call.context->runtime().attach(one, sleeper) && none_ready;
    });
    for (const Request& request : requests) {
      const Operation* operation = Requests::operation(request);
      if (operation != nullptr) none_ready = watch_shared(runtime.engine(), *operation, sleeper) && none_ready;
    }
    return runtime.attach_stepwise(sleeper) && none_ready;
  }
  void slow() noexcept {
    bool told = false;
    for_each([&](Operation& leaf) {
      if (!std::exchange(told, true)) leaf.call.context->runtime().waits_long(leaf, wait_of(leaf));
    });
  }
  template <class Visit>
  void for_each(Visit&& visit) noexcept {
    for (Request& request : requests) {
      if (Operation* operation = Requests::operation(request)) for_each_leaf(*operation, visit);
    }
  }
};

// Returns the index of a complete request, or requests.size() if all were settled before.
std::size_t wait_for(std::span<Request> requests, bool all) noexcept {
  MessageRuntime* runtime = nullptr;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Operation* operation = Requests::operation(requests[i]);
    if (operation == nullptr) continue;
    runtime = &operation->call.context->runtime();
    runtime->adopt(*operation);
    // Does not look at the requests behind it, so that a program that takes many out one by one looks at each once.
    if (!all && runtime->advance(*operation) == Step::done) {
      Requests::settle(requests[i]);
      return i;
    }
    if (all) operation->signals.is_awaited.store(true, std::memory_order_relaxed);
  }
  if (runtime == nullptr) return requests.size();
  WaitForSeveral waiting{.runtime = *runtime, .requests = requests, .all = all};
  if (all) runtime->count_changes(requests, waiting.changes);
  runtime->engine().wait(waiting);
  if (all) runtime->stop_counting();
  return waiting.index;
}

}  // namespace

}  // namespace message

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    (void)wait();
    operation_ = std::exchange(other.operation_, nullptr);
    result_ = other.result_;
  }
  return *this;
}

void Request::abandon() noexcept {
  // The message may depend on an action of this rank that the exception prevents.
  if (std::uncaught_exceptions() != 0) Requests::give_up(*this);
  (void)wait();
}

Result<Envelope> Request::wait() noexcept {
  if (operation_ != nullptr) {
    operation_->call.context->runtime().wait(*operation_, message::wait_of(*operation_));
    Requests::settle(*this);
  }
  return result_;
}

std::optional<Result<Envelope>> Request::test() noexcept {
  if (operation_ == nullptr) return result_;
  message::MessageRuntime& runtime = operation_->call.context->runtime();
  runtime.adopt(*operation_);
  if (runtime.advance(*operation_) != Step::done) {
    runtime.engine().progress();
    (void)runtime.advance_stepwise(Step::waiting);
    if (runtime.advance(*operation_) != Step::done) return std::nullopt;
  }
  Requests::settle(*this);
  return result_;
}

bool Request::cancel() noexcept {
  if (operation_ == nullptr || operation_->call.kind != Operation::Kind::receive) return false;
  message::MessageRuntime& runtime = operation_->call.context->runtime();
  runtime.adopt(*operation_);
  if (!runtime.cancel(*operation_)) return false;
  Requests::settle(*this);
  return true;
}

bool Request::complete() const noexcept { return operation_ == nullptr; }

std::size_t wait_any(std::span<Request> requests) noexcept { return message::wait_for(requests, false); }

Status wait_all(std::span<Request> requests) noexcept {
  (void)message::wait_for(requests, true);
  for (const Request& request : requests) {
    if (request.result_.status != Status::ok) return request.result_.status;
  }
  return Status::ok;
}

}  // namespace tonari
