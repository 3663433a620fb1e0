#include "mpi/environment/keyvals.hpp"

#include "mpi.h"
#include "mpi/failure.hpp"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

namespace tonari::mpi {

namespace {

struct Entry {
  std::weak_ptr<const Keyval> key;
  Key of_program;  // null once the program has freed it
};
struct Table {
  std::mutex mutex;
  std::unordered_map<int, Entry> entries;
  int last = 1000;  // above the standard's keys
};
Table& table() noexcept {
  static auto* const keys = new Table;  // attributes may outlive static objects
  return *keys;
}

const char* name_of(KeyKind kind) noexcept {
  switch (kind) {
    case KeyKind::comm: return "communicators";
    case KeyKind::type: return "datatypes";
    case KeyKind::win: return "windows";
  }
  return "";
}

bool is_predefined(int number) noexcept {
  return (number >= MPI_TAG_UB && number <= MPI_UNIVERSE_SIZE) || (number >= MPI_WIN_BASE && number <= MPI_WIN_MODEL);
}

[[noreturn]] void refuse(int number, const std::string& why) {
  throw Failure(MPI_ERR_KEYVAL, fmt::format("keyval is {}: {}", number, why));
}

}  // namespace

// Runs without the table's lock, and possibly under the lock of the attributes.
Keyval::~Keyval() {
  const std::lock_guard guard(table().mutex);
  table().entries.erase(number);
}

int make_keyval(KeyKind kind, AnyFunction copy, AnyFunction remove, void* extra_state) {
  Table& keys = table();
  const std::lock_guard guard(keys.mutex);
  const int number = ++keys.last;
  Entry& entry = keys.entries[number];
  entry.of_program = std::make_shared<const Keyval>(number, kind, copy, remove, extra_state);
  entry.key = entry.of_program;
  return number;
}

Key find_keyval(int number, KeyKind kind, bool must_be_new) {
  if (number == MPI_KEYVAL_INVALID) refuse(number, "this is MPI_KEYVAL_INVALID");
  if (is_predefined(number)) refuse(number, "the attributes of the standard cannot be changed");
  Table& keys = table();
  Key found;  // destroyed after the lock is released
  bool is_freed = true;
  {
    const std::lock_guard guard(keys.mutex);
    if (const auto entry = keys.entries.find(number); entry != keys.entries.end()) {
      found = entry->second.key.lock();
      is_freed = entry->second.of_program == nullptr;
    }
  }
  if (found == nullptr || (must_be_new && is_freed)) refuse(number, "no such key exists, or it was freed");
  if (found->kind != kind) {
    refuse(number, fmt::format("it is a key for {}, not for {}", name_of(found->kind), name_of(kind)));
  }
  return found;
}

void free_keyval(int* number, KeyKind kind) {
  Key key = find_keyval(*number, kind, true);
  Key of_program;
  {
    const std::lock_guard guard(table().mutex);
    of_program.swap(table().entries[*number].of_program);
  }
  *number = MPI_KEYVAL_INVALID;
}

}  // namespace tonari::mpi
