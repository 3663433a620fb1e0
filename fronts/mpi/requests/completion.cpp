#include "mpi/requests/completion.hpp"

#include "mpi/environment/handle_names.hpp"
#include "mpi/last_error.hpp"
#include "mpi/messages/errors.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <fmt/format.h>

#include <utility>

namespace tonari::mpi {

namespace {

void check_handle(MPI_Request handle) {
  if (handle != MPI_REQUEST_NULL && find(handle) == nullptr) [[unlikely]]
    fail_handle(MPI_ERR_REQUEST, "request", "request", handle);
}

bool has_failed(const Request& request) noexcept {
  const Status status = request.result.status;
  return request.failure != nullptr || (status != Status::ok && status != Status::cancelled);
}

Failure failure_of(const Request& request) {
  if (request.failure != nullptr) return *request.failure;
  const Status status = request.result.status;
  switch (request.kind) {
    case Request::Kind::receive: return {class_of(status), text_of_receive(request.result, request.buffer)};
    case Request::Kind::send:
      if (status == Status::bad_address) return {class_of(status), text_of_bad_send_buffer(request.buffer)};
      return {class_of(status), explanation_of(status)};
    case Request::Kind::collective: return failure_of_collective(status);
    default: return {class_of(status), explanation_of(status)};
  }
}

[[gnu::cold]] int note(const Request& request, Failures& failures) {
  const Failure failure = failure_of(request);
  remember_part(failure.code, failure.what(), failures.count == 0);
  if (failures.count++ != 0) return failure.code;
  failures.code = failure.code;
  failures.text = failure.what();
  failures.comm = request.comm;
  return failure.code;
}

// Calls what may throw Failure, which becomes the result of the request.
template <class Call>
void record(Request& request, Call&& call) {
  try {
    call();
  } catch (const Failure& failure) {
    if (request.failure == nullptr) request.failure = std::make_unique<Failure>(failure);
  }
}

void destroy(MPI_Request& handle, Request& request) noexcept {
  handle = MPI_REQUEST_NULL;
  if (&request != completed_request()) delete &request;
}

}  // namespace

Request* find_active(MPI_Request handle) {
  check_handle(handle);
  Request* const request = find(handle);
  return request != nullptr && request->is_active ? request : nullptr;
}

Handles::Handles(int count, const MPI_Request* handles) : handles_(handles), size_(static_cast<std::size_t>(count)) {
  if (count < 0) throw Failure(MPI_ERR_COUNT, fmt::format("count is {}: it must not be negative", count));
  if (handles == nullptr && count != 0) throw Failure(MPI_ERR_ARG, "array_of_requests is a null pointer");
  for (std::size_t i = 0; i < size_; ++i) {
    if (handles[i] != MPI_REQUEST_NULL && find(handles[i]) == nullptr) [[unlikely]]
      fail_handle(MPI_ERR_REQUEST, fmt::format("array_of_requests[{}]", i), "request", handles[i]);
  }
}

void describe(const Request* complete, MPI_Status* status) {
  if (complete == nullptr) return write_empty_status(status);
  const Request& request = *complete;
  if (request.conduct != nullptr) {
    MPI_Status ignored{};
    request.conduct->describe(request, status != MPI_STATUS_IGNORE ? *status : ignored);
  } else if (status != MPI_STATUS_IGNORE) {
    write_status(status, request.result.value);
    set_cancelled(*status, request.result.status == Status::cancelled);
  }
}

int end(MPI_Request& handle, Request& request, MPI_Status* status, Failures& failures) {
  record(request, [&] { describe(&request, status); });
  if (!request.is_persistent && request.conduct != nullptr) {
    record(request, [&] { request.conduct->release(request); });
  }
  const int code = has_failed(request) ? note(request, failures) : int{MPI_SUCCESS};
  if (request.is_persistent) {
    request.is_active = false;
  } else {
    destroy(handle, request);
  }
  return code;
}

void end(MPI_Request& handle, Request& request, MPI_Status* status) {
  Failures failures;
  if (end(handle, request, status, failures) != MPI_SUCCESS) [[unlikely]]
    throw CommFailure(failures.code, failures.text, std::move(failures.comm));
}

void Statuses::add(int code) noexcept {
  const std::size_t index = count_++;
  if (statuses_ == nullptr || failures_.count == 0) return;
  const bool is_first = code != MPI_SUCCESS && failures_.count == 1;
  for (std::size_t i = 0; is_first && i < index; ++i) statuses_[i].MPI_ERROR = MPI_SUCCESS;
  statuses_[index].MPI_ERROR = code;
}

void Statuses::end(MPI_Request& handle) {
  MPI_Status* const status = statuses_ != nullptr ? statuses_ + count_ : nullptr;
  Request* const request = find(handle);
  if (request != nullptr && request->is_active) return add(mpi::end(handle, *request, status, failures_));
  write_empty_status(status);
  add(MPI_SUCCESS);
}

void Statuses::raise() const {
  if (failures_.count == 0) return;
  throw CommFailure(MPI_ERR_IN_STATUS,
                    fmt::format("{} of {} completed requests failed; MPI_ERROR of each status says which. The first "
                                "failure: {}",
                                failures_.count, count_, failures_.text),
                    failures_.comm);
}

void end_complete(const Handles& handles, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                  MPI_Status* array_of_statuses) {
  make_progress();  // the other requests are looked at for the first time: what completes them may have arrived
  Statuses statuses(array_of_statuses);
  *outcount = 0;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Request* const request = handles.active(i);
    if (request == nullptr || !request->advance()) continue;
    array_of_indices[(*outcount)++] = static_cast<int>(i);
    statuses.end(array_of_requests[i]);
  }
  statuses.raise();
}

}  // namespace tonari::mpi
