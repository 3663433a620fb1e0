#include "message/schedule.hpp"

#include "job/group.hpp"
#include "message/message_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tonari::message {

using fabric::Step;

Schedule::~Schedule() {
  for (Operation* operation : running_) context_.runtime().free_operation(operation);
}

void Schedule::rewind() noexcept {
  round_ = 0;
  round_started_ = false;
  status_ = recorded_status_;
  disagrees_ = status_ != Status::ok;
}

// Makes the operation of a message, as one of the running ones. If the ranks disagree, sends are empty.
Operation& Schedule::make_operation(const Message& message) {
  MessageRuntime& runtime = context_.runtime();
  const auto kind = message.is_send ? Operation::Kind::send : Operation::Kind::receive;
  std::unique_ptr<LayoutCursor, Operation::Delete> scattered;
  if (message.scattered != nullptr && !(disagrees_ && message.is_send))
    scattered.reset(new LayoutCursor(*message.scattered));
  Operation* const operation = runtime.make_operation(kind, context_);
  operation->scattered = std::move(scattered);
  running_.push_back(operation);
  return *operation;
}

void Schedule::start_round(bool waited) {
  MessageRuntime& runtime = context_.runtime();
  const Round& round = rounds()[round_];
  running_.reserve(round.messages.size());
  for (const Message& message : round.messages) {
    Operation& operation = make_operation(message);
    operation.signals.is_awaited.store(waited, std::memory_order_relaxed);
    const int peer = context_.job_rank_of(message.peer);
    if (message.is_send) {
      const std::size_t count = disagrees_ ? 0 : message.count;
      runtime.start_send(operation, {{message.bytes, count}, peer, tag_, context_.collective_id()});
    } else {
      runtime.start_receive(operation, {{message.bytes, message.count}, peer, tag_, context_.collective_id()});
    }
  }
  round_started_ = true;
  if (disagrees_) return;
  for (const Local& local : round.meanwhile) play(local);
}

// Advances the running operations and frees the complete ones. Returns true if all are complete.
bool Schedule::finish_running(bool& retry) noexcept {
  MessageRuntime& runtime = context_.runtime();
  std::erase_if(running_, [&](Operation* operation) {
    const Step step = runtime.advance(*operation);
    retry = retry || step == Step::retry;
    if (step != Step::done) return false;
    const bool is_short = operation->progress.status == Status::ok &&
                          operation->call.kind == Operation::Kind::receive &&
                          operation->result().value.bytes < operation->call.buffer.size();
    const bool disagrees = is_short || operation->progress.status == Status::truncated;
    disagrees_ = disagrees_ || disagrees;
    if (status_ == Status::ok) status_ = disagrees ? Status::invalid : operation->progress.status;
    runtime.free_operation(operation);
    return true;
  });
  return running_.empty();
}

Step Schedule::play_shared() noexcept {
  const Step step = shared_->step();
  if (step != Step::done) return step;
  is_shared_done_ = true;
  if (shared_->needs_messages()) [[unlikely]] {
    try {
      shared_->write_messages(*this);
    } catch (const std::bad_alloc&) {
      status_ = Status::no_memory;
    }
  }
  if (status_ == Status::ok) status_ = shared_->status();
  if (status_ != Status::ok) round_ = rounds().size();
  return step;
}

Step Schedule::advance(Operation& self) noexcept {
  if (shared_ && !is_shared_done_) {
    const Step step = play_shared();
    if (step != Step::done) return step;
  }
  for (; round_ < rounds().size(); ++round_, round_started_ = false) {
    if (!round_started_) {
      try {
        start_round(self.signals.is_awaited.load(std::memory_order_relaxed));
      } catch (const std::bad_alloc&) {
        status_ = Status::no_memory;
        round_started_ = true;
      }
    }
    bool retry = false;
    if (!finish_running(retry)) return retry ? Step::retry : Step::waiting;
    if (status_ != Status::ok && !disagrees_)
      break;  // only here, because until now the other operations of the round used their buffers
    for (const Local& local : rounds()[round_].locals) {
      if (!disagrees_) play(local);
    }
  }
  complete(self, status_);
  return Step::done;
}

void Schedule::complete(Operation& self, Status status) noexcept {
  if (at_end_) status = status_ = std::exchange(at_end_, nullptr)(status);
  self.progress.status = status;
  self.progress.handled = State::complete;
  self.progress.state.store(State::complete, std::memory_order_relaxed);  // relaxed: only its owning thread reads it
}

void Schedule::play(const Local& local) noexcept {
  if (local.bytes == 0) return;
  if (local.scattered_into != nullptr) {
    message::copy(*local.scattered_into, *local.scattered_from);
  } else if (local.reduction.fold == nullptr) {
    std::memcpy(local.into, local.from, local.bytes);
  } else {
    local.reduction.fold(local.into, local.from, local.bytes / local.reduction.element_bytes,
                         local.reduction.operation);
  }
}

bool Schedule::ready() const noexcept {
  if (const SharedCollective* const board_collective = shared()) return board_collective->ready();
  for (const Operation* operation : running_) {
    if (operation->ready()) return true;
  }
  return false;
}

}  // namespace tonari::message
