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
  return true;
}

namespace {

// Requests and pointers to requests, for wait_for_several().
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

}  // namespace

void wait_any(std::span<Request* const> requests) noexcept {
  (void)wait_for_several(Listed<Request* const>{requests}, false);
}
void wait_all(std::span<Request* const> requests) noexcept {
  (void)wait_for_several(Listed<Request* const>{requests}, true);
}

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
  if (!Requests::advance(*this)) {
    runtime.engine().progress();
    (void)runtime.advance_stepwise(Step::waiting);
    if (!Requests::advance(*this)) return std::nullopt;
  }
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
  return message::wait_for_several(message::Listed<Request>{requests}, false);
}

Status wait_all(std::span<Request> requests) noexcept {
  (void)message::wait_for_several(message::Listed<Request>{requests}, true);
  for (const Request& request : requests) {
    if (request.result_.status != Status::ok) return request.result_.status;
  }
  return Status::ok;
}

}  // namespace tonari
