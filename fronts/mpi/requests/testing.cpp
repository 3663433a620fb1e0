#include "functions.hpp"
#include "mpi/requests/completion.hpp"
#include "mpi/requests/progress.hpp"
#include "mpi/status.hpp"

#include <optional>

// Functions that look whether requests are complete, and do not wait.
namespace tonari::mpi {

namespace {

// Calls `look` until it returns true, at most twice, with progress in between.
template <class Look>
bool look_twice(Look&& look) {
  if (look()) return true;
  make_progress();
  if (look()) return true;
  let_others_run();
  return false;
}

bool is_complete(Request& request) {
  return look_twice([&] { return request.advance(); });
}

bool are_complete(const Handles& handles) {
  std::size_t first = 0;  // all before it are complete
  return look_twice([&] {
    while (first < handles.size() && (handles.active(first) == nullptr || handles.active(first)->advance())) ++first;
    return first == handles.size();
  });
}

// Returns the index of a complete request; the number of handles if no request is active; nothing if no active one is
// complete.
std::optional<std::size_t> find_complete(const Handles& handles) {
  std::size_t found = handles.size();
  bool has_active = false;
  const bool has_found = look_twice([&] {
    for (std::size_t i = 0; i < handles.size(); ++i) {
      Request* const request = handles.active(i);
      if (request == nullptr) continue;
      has_active = true;
      if (!request->advance()) continue;
      found = i;
      return true;
    }
    return !has_active;
  });
  return has_found ? std::optional(found) : std::nullopt;
}

}  // namespace

void test(MPI_Request* request, int* flag, MPI_Status* status) {
  Request* const active = find_active(*request);
  *flag = active == nullptr || is_complete(*active) ? 1 : 0;
  if (active == nullptr) return write_empty_status(status);
  if (*flag != 0) end(*request, *active, status);
}

void testall(int count, MPI_Request* array_of_requests, int* flag, MPI_Status* array_of_statuses) {
  const Handles handles(count, array_of_requests);
  *flag = are_complete(handles) ? 1 : 0;
  if (*flag == 0) return;
  Statuses statuses(array_of_statuses);
  for (std::size_t i = 0; i < handles.size(); ++i) statuses.end(array_of_requests[i]);
  statuses.raise();
}

void testany(int count, MPI_Request* array_of_requests, int* indx, int* flag, MPI_Status* status) {
  const Handles handles(count, array_of_requests);
  const auto found = find_complete(handles);
  *flag = found ? 1 : 0;
  *indx = found && *found < handles.size() ? static_cast<int>(*found) : int{MPI_UNDEFINED};
  if (!found) return;
  if (*found == handles.size()) return write_empty_status(status);
  end(array_of_requests[*found], *handles.active(*found), status);
}

void testsome(int incount, MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
              MPI_Status* array_of_statuses) {
  const Handles handles(incount, array_of_requests);
  const auto found = find_complete(handles);
  *outcount = found ? int{MPI_UNDEFINED} : 0;
  if (!found || *found == handles.size()) return;
  end_complete(handles, array_of_requests, outcount, array_of_indices, array_of_statuses);
}

void request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Request* const active = find_active(request);
  *flag = active == nullptr || is_complete(*active) ? 1 : 0;
  if (active == nullptr) return write_empty_status(status);
  if (*flag != 0) describe(active, status);
}

void request_get_status_all(int count, const MPI_Request* array_of_requests, int* flag, MPI_Status* array_of_statuses) {
  const Handles handles(count, array_of_requests);
  *flag = are_complete(handles) ? 1 : 0;
  if (*flag == 0 || array_of_statuses == MPI_STATUSES_IGNORE) return;
  for (std::size_t i = 0; i < handles.size(); ++i) describe(handles.active(i), &array_of_statuses[i]);
}

void request_get_status_any(int count, const MPI_Request* array_of_requests, int* indx, int* flag, MPI_Status* status) {
  const Handles handles(count, array_of_requests);
  const auto found = find_complete(handles);
  *flag = found ? 1 : 0;
  *indx = found && *found < handles.size() ? static_cast<int>(*found) : int{MPI_UNDEFINED};
  if (found) describe(*found < handles.size() ? handles.active(*found) : nullptr, status);
}

void request_get_status_some(int incount, const MPI_Request* array_of_requests, int* outcount, int* array_of_indices,
                             MPI_Status* array_of_statuses) {
  const Handles handles(incount, array_of_requests);
  const auto found = find_complete(handles);
  *outcount = found ? int{MPI_UNDEFINED} : 0;
  if (!found || *found == handles.size()) return;
  *outcount = 0;
  make_progress();
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Request* const request = handles.active(i);
    if (request == nullptr || !request->advance()) continue;
    if (array_of_statuses != MPI_STATUSES_IGNORE) describe(request, &array_of_statuses[*outcount]);
    array_of_indices[(*outcount)++] = static_cast<int>(i);
  }
}

}  // namespace tonari::mpi
