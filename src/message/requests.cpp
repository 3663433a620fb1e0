#include "message/requests.hpp"

#include "message/message_runtime.hpp"
#include "message/schedule.hpp"
#include "message/wait_for_several.hpp"

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

bool Requests::advance(Request& request) noexcept {
  if (request.operation_ == nullptr) return true;
  MessageRuntime& runtime = request.operation_->call.context->runtime();
  runtime.adopt(*request.operation_);
  if (runtime.advance(*request.operation_) != Step::done) return false;
  settle(request);
  runtime.finish_due_receives();
  return true;
}

namespace {

// Requests and pointers to requests, for wait_for_all() and wait_for_any().
Request& request_in(Request& element) noexcept { return element; }
Request& request_in(Request* element) noexcept { return *element; }

template <class Element>
struct Listed {
  std::span<Element> elements;

  [[nodiscard]] std::size_t size() const noexcept { return elements.size(); }
  [[nodiscard]] Operation* operation(std::size_t i) const noexcept {
    return Requests::operation(request_in(elements[i]));
  }
  void settle(std::size_t i) const noexcept { Requests::settle(request_in(elements[i])); }
};

// Advances all requests; `complete(i)` is called for each that is complete. Returns the number of the others.
template <class Complete>
std::size_t advance_all(MessageRuntime& runtime, std::span<Request> requests, Complete&& complete) noexcept {
  std::size_t open = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Operation* const operation = Requests::operation(requests[i]);
    if (operation == nullptr) continue;
    if (runtime.advance(*operation) == Step::done) {
      complete(i);
    } else {
      ++open;
    }
  }
  return open;
}

// Looks at all requests, and once more after progress unless `look()` returns true, which then is returned.
template <class Look>
bool look_twice(MessageRuntime& runtime, Look&& look) noexcept {
  bool found = look();
  if (!found) {
    runtime.engine().progress();
    (void)runtime.advance_stepwise(Step::waiting);
    found = look();
  }
  if (found) runtime.finish_due_receives();
  return found;
}

Status first_failure(std::span<Request> requests) noexcept {
  for (const Request& request : requests) {
    const Status status = Requests::result(request).status;
    if (status != Status::ok) return status;
  }
  return Status::ok;
}

}  // namespace

void Requests::detach(Request& request) noexcept {
  Operation* const operation = request.operation_;
  if (operation == nullptr) return;
  MessageRuntime& runtime = operation->call.context->runtime();
  if (operation->call.kind == Operation::Kind::collective || !runtime.detach(*operation)) {
    (void)request.wait();
  } else {
    request.operation_ = nullptr;
    request.result_ = {};
  }
}

Request Requests::foreign(MessageRuntime& runtime, Operation*& operation) {
  operation = runtime.make_foreign();
  return started(operation);
}

void Requests::complete_foreign(Operation& operation, Status status) noexcept {
  operation.call.context->runtime().complete_foreign(operation, status);
}

void wait_any(std::span<Request* const> requests) noexcept { (void)wait_for_any(Listed<Request* const>{requests}); }
void wait_all(std::span<Request* const> requests) noexcept { wait_for_all(Listed<Request* const>{requests}); }

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
  if (!message::look_twice(runtime, [&] { return runtime.advance(*operation_) == Step::done; })) return std::nullopt;
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

std::size_t wait_any(std::span<Request> requests) noexcept {
  return message::wait_for_any(message::Listed<Request>{requests});
}

std::size_t wait_some(std::span<Request> requests, std::span<std::size_t> completed) noexcept {
  std::size_t open = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].complete()) completed[open++] = i;
  }
  if (wait_any(requests) == requests.size()) return 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < open; ++i) {
    Request& request = requests[completed[i]];
    Operation* const operation = Requests::operation(request);
    const bool is_done = operation == nullptr || operation->call.context->runtime().advance(*operation) == Step::done;
    if (!is_done) continue;
    if (operation != nullptr) Requests::settle(request);
    completed[count++] = completed[i];
  }
  return count;
}

Status wait_all(std::span<Request> requests) noexcept {
  message::wait_for_all(message::Listed<Request>{requests});
  return message::first_failure(requests);
}

std::optional<std::size_t> test_any(std::span<Request> requests) noexcept {
  message::MessageRuntime* const runtime = message::adopt_all(message::Listed<Request>{requests});
  if (runtime == nullptr) return requests.size();
  std::optional<std::size_t> found;
  const bool is_done = message::look_twice(*runtime, [&] {
    message::advance_all(*runtime, requests, [&](std::size_t i) { found = found.value_or(i); });
    return found.has_value();
  });
  if (is_done) Requests::settle(requests[*found]);
  return found;
}

std::size_t test_some(std::span<Request> requests, std::span<std::size_t> completed) noexcept {
  message::MessageRuntime* const runtime = message::adopt_all(message::Listed<Request>{requests});
  if (runtime == nullptr) return 0;
  std::size_t count = 0;
  (void)message::look_twice(*runtime, [&] {
    message::advance_all(*runtime, requests, [&](std::size_t i) { completed[count++] = i; });
    return count != 0;
  });
  for (const std::size_t i : completed.first(count)) Requests::settle(requests[i]);
  return count;
}

std::optional<Status> test_all(std::span<Request> requests) noexcept {
  message::MessageRuntime* const runtime = message::adopt_all(message::Listed<Request>{requests});
  const auto all_done = [&] { return message::advance_all(*runtime, requests, [](std::size_t) {}) == 0; };
  if (runtime != nullptr && !message::look_twice(*runtime, all_done)) return std::nullopt;
  for (Request& request : requests) {
    if (Requests::operation(request) != nullptr) Requests::settle(request);
  }
  return message::first_failure(requests);
}

}  // namespace tonari
