#include "functions.hpp"

#include <climits>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

// Handles as integers, for other languages.
// A predefined handle is its number. An address that was converted once keeps its integer for ever, also after its
// object was freed. A later object at this address has the same integer. The table grows with the number of different
// addresses, not with the number of conversions.
namespace tonari::mpi {

namespace {

class Table {
 public:
  int number_of_address(std::uintptr_t address) {
    {
      const std::shared_lock guard(mutex_);
      if (const auto found = numbers_.find(address); found != numbers_.end()) return found->second;
    }
    const std::unique_lock guard(mutex_);
    const auto [place, is_new] = numbers_.try_emplace(address, static_cast<int>(first_address + addresses_.size()));
    if (is_new) addresses_.push_back(address);
    return place->second;
  }
  // Returns 0 if no handle has this number.
  std::uintptr_t address_of_number(int number) {
    const auto index = static_cast<std::size_t>(number) - first_address;
    const std::shared_lock guard(mutex_);
    return index < addresses_.size() ? addresses_[index] : 0;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::uintptr_t, int> numbers_;
  std::vector<std::uintptr_t> addresses_;
};

Table& table() noexcept {
  static auto* const numbers = new Table;  // programs may use it until the process ends
  return *numbers;
}

// Memory that the system refuses ends the process: the function returns no error.
template <class Handle>
int to_int(Handle handle) noexcept {
  const std::uintptr_t number = number_of(handle);
  return number < first_address ? static_cast<int>(number) : table().number_of_address(number);
}

// A number without a handle becomes the null handle.
template <class Handle>
Handle from_int(int number, Handle null) noexcept {
  if (number <= 0) return null;
  const auto place = static_cast<std::uintptr_t>(number);
  const std::uintptr_t handle = place < first_address ? place : table().address_of_number(number);
  return handle == 0 ? null : reinterpret_cast<Handle>(handle);
}

}  // namespace

int comm_toint(MPI_Comm comm) { return to_int(comm); }
int errhandler_toint(MPI_Errhandler errhandler) { return to_int(errhandler); }
int file_toint(MPI_File file) { return to_int(file); }
int group_toint(MPI_Group group) { return to_int(group); }
int info_toint(MPI_Info info) { return to_int(info); }
int message_toint(MPI_Message message) { return to_int(message); }
int op_toint(MPI_Op op) { return to_int(op); }
int request_toint(MPI_Request request) { return to_int(request); }
int session_toint(MPI_Session session) { return to_int(session); }
int type_toint(MPI_Datatype datatype) { return to_int(datatype); }
int win_toint(MPI_Win win) { return to_int(win); }

MPI_Comm comm_fromint(int comm) { return from_int(comm, MPI_COMM_NULL); }
MPI_Errhandler errhandler_fromint(int errhandler) { return from_int(errhandler, MPI_ERRHANDLER_NULL); }
MPI_File file_fromint(int file) { return from_int(file, MPI_FILE_NULL); }
MPI_Group group_fromint(int group) { return from_int(group, MPI_GROUP_NULL); }
MPI_Info info_fromint(int info) { return from_int(info, MPI_INFO_NULL); }
MPI_Message message_fromint(int message) { return from_int(message, MPI_MESSAGE_NULL); }
MPI_Op op_fromint(int op) { return from_int(op, MPI_OP_NULL); }
MPI_Request request_fromint(int request) { return from_int(request, MPI_REQUEST_NULL); }
MPI_Session session_fromint(int session) { return from_int(session, MPI_SESSION_NULL); }
MPI_Datatype type_fromint(int datatype) { return from_int(datatype, MPI_DATATYPE_NULL); }
MPI_Win win_fromint(int win) { return from_int(win, MPI_WIN_NULL); }

}  // namespace tonari::mpi
