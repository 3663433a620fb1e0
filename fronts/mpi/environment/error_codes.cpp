#include "mpi/environment/error_codes.hpp"

#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>

namespace tonari::mpi {

namespace {

struct Class {
  int code;
  std::string_view name;
  std::string_view sentence;
};
// In the order of their codes.
constexpr auto classes = std::to_array<Class>({
    {MPI_SUCCESS, "MPI_SUCCESS", "no error"},
    {MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "a buffer's address is not valid"},
    {MPI_ERR_COUNT, "MPI_ERR_COUNT", "a count is negative or too large"},
    {MPI_ERR_TYPE, "MPI_ERR_TYPE", "a datatype is not valid or not committed"},
    {MPI_ERR_TAG, "MPI_ERR_TAG", "a tag is negative or larger than the attribute MPI_TAG_UB"},
    {MPI_ERR_COMM, "MPI_ERR_COMM", "a communicator is not valid, or not of the kind that the function needs"},
    {MPI_ERR_RANK, "MPI_ERR_RANK", "a rank is outside its communicator or group"},
    {MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "a request is not valid, or in a state that the function does not allow"},
    {MPI_ERR_ROOT, "MPI_ERR_ROOT", "the root is no rank of the communicator"},
    {MPI_ERR_GROUP, "MPI_ERR_GROUP", "a group is not valid"},
    {MPI_ERR_OP, "MPI_ERR_OP", "an operation is not valid, or not defined for the datatype"},
    {MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "the communicator has no topology of the kind that the function needs"},
    {MPI_ERR_DIMS, "MPI_ERR_DIMS", "a number of dimensions, or the extent of one, is not valid"},
    {MPI_ERR_ARG, "MPI_ERR_ARG", "an argument is not valid"},
    {MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "the error is unknown"},
    {MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "a message was longer than the buffer of its receive"},
    {MPI_ERR_OTHER, "MPI_ERR_OTHER", "an error that has no class of its own"},
    {MPI_ERR_INTERN, "MPI_ERR_INTERN", "an internal error of the MPI library"},
    {MPI_ERR_PENDING, "MPI_ERR_PENDING", "the request has neither failed nor completed"},
    {MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "requests failed: each status has the code of its request"},
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission for the file was denied"},
    {MPI_ERR_AMODE, "MPI_ERR_AMODE", "the access mode of the file is not valid"},
    {MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "an assertion is not valid"},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "the file name is not valid"},
    {MPI_ERR_BASE, "MPI_ERR_BASE", "the base address is not valid"},
    {MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "a function that converts data failed"},
    {MPI_ERR_DISP, "MPI_ERR_DISP", "a displacement is not valid"},
    {MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "a data representation of this name exists already"},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "the file exists already"},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "the file is open"},
    {MPI_ERR_FILE, "MPI_ERR_FILE", "a file handle is not valid"},
    {MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "the key of an info object is empty or too long"},
    {MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "the info object has no such key"},
    {MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "the value of an info object is too long"},
    {MPI_ERR_INFO, "MPI_ERR_INFO", "an info object is not valid"},
    {MPI_ERR_IO, "MPI_ERR_IO", "reading or writing failed"},
    {MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "an attribute key is not valid"},
    {MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "the kind of lock is not valid"},
    {MPI_ERR_NAME, "MPI_ERR_NAME", "the name of a service was not published"},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "no memory is left"},
    {MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "an argument differs between ranks that must give the same"},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "no space is left on the device"},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "the file does not exist"},
    {MPI_ERR_PORT, "MPI_ERR_PORT", "the name of a port is not valid"},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "the quota is exceeded"},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "the file or the file system is read-only"},
    {MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "memory cannot be attached to the window"},
    {MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "accesses to a window conflict"},
    {MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "the target's memory is not part of the window"},
    {MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "the ranks of the communicator cannot share memory"},
    {MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "the synchronisation of a window is wrong"},
    {MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "the name of a service cannot be taken back: it is not published"},
    {MPI_ERR_SIZE, "MPI_ERR_SIZE", "a size is not valid"},
    {MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes cannot be started"},
    {MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "the data representation is not supported"},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION",
     "this MPI library does not support the operation; `tonari info --mpi` lists what it does not support"},
    {MPI_ERR_WIN, "MPI_ERR_WIN", "a window is not valid"},
    {MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "a window of this kind does not allow the function"},
    {MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a rank that the operation needs has ended"},
    {MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "a result is too large for its argument"},
    {MPI_ERR_SESSION, "MPI_ERR_SESSION", "a session is not valid"},
    {MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "an error handler is not valid, or of another kind of object"},
    {MPI_ERR_ABI, "MPI_ERR_ABI", "what the program says about its ABI is not possible"},
    {MPI_T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT", "the tool interface cannot be initialised"},
    {MPI_T_ERR_NOT_ACCESSIBLE, "MPI_T_ERR_NOT_ACCESSIBLE", "the tool interface is not accessible"},
    {MPI_T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED", "the tool interface is not initialised"},
    {MPI_T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "the tool interface does not support this"},
    {MPI_T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "the tool interface has no memory left"},
    {MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID", "an argument of the tool interface is not valid"},
    {MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "an index of the tool interface is not valid"},
    {MPI_T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "the index of an item is out of range"},
    {MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION", "a session of the tool interface is not valid"},
    {MPI_T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "a handle of the tool interface is not valid"},
    {MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "the tool interface has nothing of this name"},
    {MPI_T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "the tool interface has no handles left"},
    {MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "the tool interface has no sessions left"},
    {MPI_T_ERR_CVAR_SET_NOT_NOW, "MPI_T_ERR_CVAR_SET_NOT_NOW", "the variable cannot be set at this time"},
    {MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "the variable can never be set"},
    {MPI_T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE", "the performance variable cannot be written"},
    {MPI_T_ERR_PVAR_NO_STARTSTOP, "MPI_T_ERR_PVAR_NO_STARTSTOP",
     "the performance variable cannot be started or stopped"},
    {MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC", "the performance variable cannot be read and reset at once"},
});
static_assert(std::ranges::is_sorted(classes, {}, &Class::code));

const Class* find_class(int code) noexcept {
  const auto found = std::ranges::lower_bound(classes, code, {}, &Class::code);
  return found != classes.end() && found->code == code ? &*found : nullptr;
}

/// A class or code that a program has added.
struct Added {
  bool is_class;
  int error_class;  // of a class: itself
  std::optional<std::string> text{};
};

class AddedCodes {
 public:
  int add(std::optional<int> error_class) {
    const std::lock_guard guard(mutex_);
    if (error_class && find_class(*error_class) == nullptr) {
      const auto found = added_.find(*error_class);
      if (found == added_.end() || !found->second.is_class) {
        throw Failure(MPI_ERR_ARG, fmt::format("errorclass is {}: no such error class exists", *error_class));
      }
    }
    const int code = added_.empty() ? MPI_ERR_LASTCODE + 1 : added_.rbegin()->first + 1;
    added_.emplace(code, Added{!error_class, error_class.value_or(code)});
    update_last();
    return code;
  }

  void remove(int code, bool is_class) {
    const std::lock_guard guard(mutex_);
    const char* const what = is_class ? "errorclass" : "errorcode";
    const auto found = added_.find(code);
    if (found == added_.end() || found->second.is_class != is_class) {
      throw Failure(MPI_ERR_ARG,
                    fmt::format("{} is {}, which this program did not add, or removed already", what, code));
    }
    if (found->second.text) {
      throw Failure(MPI_ERR_ARG,
                    fmt::format("{} is {}, which has a string: call MPI_Remove_error_string first", what, code));
    }
    if (is_class && std::ranges::any_of(added_, [code](const auto& each) {
          return each.first != code && each.second.error_class == code;
        })) {
      throw Failure(MPI_ERR_ARG,
                    fmt::format("errorclass is {}, which has error codes: call MPI_Remove_error_code first", code));
    }
    added_.erase(found);
    update_last();
  }

  void set_text(int code, std::optional<std::string> text) {
    const std::lock_guard guard(mutex_);
    const auto found = added_.find(code);
    if (found == added_.end()) {
      throw Failure(MPI_ERR_ARG,
                    fmt::format("errorcode is {}, which this program did not add, or removed already", code));
    }
    if (!text && !found->second.text) {
      throw Failure(MPI_ERR_ARG, fmt::format("errorcode is {}, which has no string", code));
    }
    found->second.text = std::move(text);
  }

  std::optional<Added> find(int code) {
    const std::lock_guard guard(mutex_);
    const auto found = added_.find(code);
    return found != added_.end() ? std::optional(found->second) : std::nullopt;
  }

  int* last_used() noexcept { return &last_used_; }

 private:
  // Relaxed: programs read it as an int, whenever they like.
  void update_last() noexcept {
    std::atomic_ref(last_used_)
        .store(added_.empty() ? MPI_ERR_LASTCODE : added_.rbegin()->first, std::memory_order_relaxed);
  }

  std::mutex mutex_;
  std::map<int, Added> added_;
  int last_used_ = MPI_ERR_LASTCODE;
};

AddedCodes& added_codes() noexcept {
  static auto* const codes = new AddedCodes;  // programs may use it until the process ends
  return *codes;
}

}  // namespace

std::string_view error_class_name(int code) noexcept {
  const Class* const found = find_class(code);
  return found != nullptr ? found->name : std::string_view();
}

std::string error_sentence(int code) {
  if (const Class* const found = find_class(code); found != nullptr) return std::string(found->sentence);
  if (const auto added = added_codes().find(code); added) return added->text.value_or("");
  return fmt::format("{} is no error code of this program", code);
}

int error_class_of(int code) {
  if (find_class(code) != nullptr) return code;
  const auto added = added_codes().find(code);
  return added ? added->error_class : static_cast<int>(MPI_ERR_UNKNOWN);
}

bool is_error_code(int code) { return find_class(code) != nullptr || added_codes().find(code).has_value(); }
int* last_used_code() noexcept { return added_codes().last_used(); }

void add_error_class(int* errorclass) { *errorclass = added_codes().add(std::nullopt); }
void add_error_code(int errorclass, int* errorcode) { *errorcode = added_codes().add(errorclass); }
void add_error_string(int errorcode, const char* string) {
  const std::string text(string);
  if (text.size() >= MPI_MAX_ERROR_STRING) {
    throw Failure(MPI_ERR_ARG,
                  fmt::format("string has {} characters: at most {} fit", text.size(), MPI_MAX_ERROR_STRING - 1));
  }
  added_codes().set_text(errorcode, text);
}
void remove_error_class(int errorclass) { added_codes().remove(errorclass, true); }
void remove_error_code(int errorcode) { added_codes().remove(errorcode, false); }
void remove_error_string(int errorcode) { added_codes().set_text(errorcode, std::nullopt); }

}  // namespace tonari::mpi
