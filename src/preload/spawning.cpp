#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>

// Wraps posix_spawn. libc blocks all signals while it reads the arguments and starts the child. The child resets the
// handlers, and the kernel lets it read the arguments. None of them could meet absent memory, so they get copies in
// local memory.
TONARI_NEXT(posix_spawn)
TONARI_NEXT(posix_spawnp)

using namespace tonari::preload;

namespace {

// ---- File actions ----

// A file action of glibc, whose headers do not show it. has_known_actions() checks the layout.
struct Action {
  enum What : int { opens = 2, changes_folder = 3 };
  struct Open {
    int file;
    char* path;
    int flags;
    mode_t mode;
  };
  int what;
  union {
    Open open;
    char* folder;
  };
};

char** path_of(Action& action) noexcept {
  switch (action.what) {
    case Action::opens: return &action.open.path;
    case Action::changes_folder: return &action.folder;
    default: return nullptr;
  }
}

std::span<Action> all_of(const posix_spawn_file_actions_t& actions) noexcept {
  return {reinterpret_cast<Action*>(actions.__actions), static_cast<std::size_t>(actions.__used)};
}

bool is_open(const Action& action, int file, const char* path, int flags, mode_t mode) noexcept {
  return action.what == Action::opens && action.open.file == file && action.open.flags == flags &&
         action.open.mode == mode && std::strcmp(action.open.path, path) == 0;
}

// Lets libc make actions, and compares them with the layout that is expected.
bool makes_known_actions() noexcept {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return false;
  bool is_known = ::posix_spawn_file_actions_addopen(&actions, 1, "/a", 2, 3) == 0 &&
                  ::posix_spawn_file_actions_addchdir_np(&actions, "/b") == 0 &&
                  ::posix_spawn_file_actions_addopen(&actions, 4, "/c", 5, 6) == 0;
  const std::span<const Action> all = all_of(actions);
  is_known = is_known && all.size() == 3 && is_open(all[0], 1, "/a", 2, 3) && is_open(all[2], 4, "/c", 5, 6) &&
             all[1].what == Action::changes_folder && std::strcmp(all[1].folder, "/b") == 0;
  (void)::posix_spawn_file_actions_destroy(&actions);
  return is_known;
}

bool has_known_actions() noexcept {
  enum Knowledge { untried, known, unknown };
  static constinit std::atomic<Knowledge> knowledge{untried};  // relaxed: each thread could find it out
  if (knowledge.load(std::memory_order_relaxed) == untried)
    knowledge.store(makes_known_actions() ? known : unknown, std::memory_order_relaxed);
  return knowledge.load(std::memory_order_relaxed) == known;
}

// ---- Copies ----

std::size_t bytes_of(const char* text) noexcept { return std::strlen(text) + 1; }

std::size_t length_of(char* const* list) noexcept {
  std::size_t length = 0;
  while (list[length] != nullptr) ++length;
  return length;
}

std::size_t bytes_of(char* const* list) noexcept {
  std::size_t bytes = 2 * sizeof(char*);  // the end of the list, and alignment
  for (; list != nullptr && *list != nullptr; ++list) bytes += sizeof(char*) + bytes_of(*list);
  return bytes;
}

std::size_t bytes_of(const posix_spawn_file_actions_t* actions) noexcept {
  if (actions == nullptr) return 0;
  std::size_t bytes = alignof(Action);
  for (Action& each : all_of(*actions)) {
    bytes += sizeof each;
    if (char* const* const path = path_of(each)) bytes += bytes_of(*path);
  }
  return bytes;
}

/// The arguments of posix_spawn that are copied.
struct Start {
  const char* path;
  char* const* arguments;
  char* const* variables;
  const posix_spawn_file_actions_t* actions;  // nullptr: none
};

/// Local copies of a Start.
class LocalStart {
 public:
  explicit LocalStart(const Start& start) noexcept
      : local_(bytes_of(start.arguments) + bytes_of(start.variables) + bytes_of(start.path) + bytes_of(start.actions)) {
    if (local_.start() == nullptr) return;
    rest_ = {reinterpret_cast<char*>(local_.start()), local_.bytes()};
    arguments_ = copy(start.arguments);
    variables_ = copy(start.variables);
    is_whole_ = start.actions == nullptr || copy(*start.actions);
    path_ = copy(start.path);
  }
  /// Returns false if there is no memory.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_ && path_ != nullptr; }
  [[nodiscard]] const char* path() const noexcept { return path_; }
  [[nodiscard]] char** arguments() const noexcept { return arguments_; }
  [[nodiscard]] char** variables() const noexcept { return variables_; }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }

 private:
  // Another thread may change the texts meanwhile: whatever they are, the copies stay in their memory.
  char* copy(const char* text) noexcept {
    const std::size_t bytes = std::min(bytes_of(text), rest_.size());
    if (bytes == 0) return nullptr;
    char* const start = rest_.data();
    std::memcpy(start, text, bytes);
    start[bytes - 1] = 0;
    rest_ = rest_.subspan(bytes);
    return start;
  }
  // Returns room for `count` values, or nullptr.
  template <class Value>
  Value* room(std::size_t count) noexcept {
    rest_ = rest_.subspan(std::min(-address_of(rest_.data()) % alignof(Value), rest_.size()));
    if (rest_.size() < count * sizeof(Value)) return nullptr;
    auto* const start = reinterpret_cast<Value*>(rest_.data());
    rest_ = rest_.subspan(count * sizeof(Value));
    return start;
  }
  char** copy(char* const* list) noexcept {
    if (list == nullptr) return nullptr;
    const std::size_t length = length_of(list);
    char** const start = room<char*>(length + 1);
    if (start == nullptr) return nullptr;
    for (std::size_t i = 0; i < length; ++i) start[i] = copy(list[i]);
    start[length] = nullptr;
    return start;
  }
  bool copy(const posix_spawn_file_actions_t& actions) noexcept {
    actions_ = actions;
    const std::span<Action> all = all_of(actions);
    auto* const start = room<Action>(all.size());
    if (start == nullptr) return false;
    std::ranges::copy(all, start);
    actions_.__actions = reinterpret_cast<decltype(actions_.__actions)>(start);
    for (Action& each : all_of(actions_)) {
      char** const path = path_of(each);
      if (path != nullptr && (*path = copy(*path)) == nullptr) return false;
    }
    return true;
  }

  Local local_;
  std::span<char> rest_;
  char** arguments_ = nullptr;
  char** variables_ = nullptr;
  const char* path_ = nullptr;
  posix_spawn_file_actions_t actions_{};
  bool is_whole_ = false;
};

/// A local copy of a value that may be missing.
template <class Value>
class LocalValue {
 public:
  explicit LocalValue(const Value* value) noexcept : is_given_(value != nullptr) {
    if (is_given_) copy_ = *value;
  }
  [[nodiscard]] const Value* get() const noexcept { return is_given_ ? &copy_ : nullptr; }

 private:
  bool is_given_;
  Value copy_{};
};

int spawn_locally(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                  const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  const bool copies_actions = actions != nullptr && has_known_actions();
  const LocalStart start({path, arguments, variables, copies_actions ? actions : nullptr});
  if (!start.is_whole()) return ENOMEM;
  const LocalValue<posix_spawnattr_t> attributes_copy(attributes);
  pid_t started = 0;
  const int error = next::posix_spawn(&started, start.path(), copies_actions ? start.actions() : actions,
                                      attributes_copy.get(), start.arguments(), start.variables());
  if (error == 0 && process != nullptr) *process = started;
  return error;
}

// ---- The search for a program ----

using Path = std::array<char, PATH_MAX>;

bool may_be_executed(const char* path) noexcept {
  struct stat found {};
  if (::faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0 || ::stat(path, &found) != 0) return false;
  if (S_ISREG(found.st_mode)) return true;
  return failed(EACCES, false);
}

// Makes FOLDER/NAME; only NAME if the folder is empty. Returns false if it is too long.
bool join(const char* folder, std::size_t folder_bytes, const char* name, Path& to) noexcept {
  const std::size_t name_bytes = bytes_of(name);
  if (folder_bytes + 1 + name_bytes > to.size()) return false;
  std::memcpy(to.data(), folder, folder_bytes);
  if (folder_bytes != 0) to[folder_bytes++] = '/';
  std::memcpy(to.data() + folder_bytes, name, name_bytes);
  return true;
}

// Writes the path of the program to `to`. Returns 0 or an error number.
int find_program(const char* name, Path& to) noexcept {
  const char* folder = std::getenv("PATH");
  if (folder == nullptr) folder = "/bin:/usr/bin";
  bool is_denied = false;
  for (;; ++folder) {
    const std::size_t bytes = std::strcspn(folder, ":");
    if (join(folder, bytes, name, to)) {
      if (may_be_executed(to.data())) return 0;
      is_denied |= errno == EACCES;
    }
    folder += bytes;
    if (*folder == 0) return is_denied ? EACCES : ENOENT;
  }
}

}  // namespace

TONARI_EXPORTED int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  if (!may_be_unreached()) return next::posix_spawn(process, path, actions, attributes, arguments, variables);
  const int before = errno;
  const int error = spawn_locally(process, path, actions, attributes, arguments, variables);
  errno = before;
  return error;
}

// libc's child would look for PATH among the variables, which may be absent. So the search is made here.
TONARI_EXPORTED int posix_spawnp(pid_t* process, const char* name, const posix_spawn_file_actions_t* actions,
                                 const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  if (!may_be_unreached()) return next::posix_spawnp(process, name, actions, attributes, arguments, variables);
  if (*name == 0 || std::strchr(name, '/') != nullptr)
    return posix_spawn(process, name, actions, attributes, arguments, variables);
  const int before = errno;
  Path path;
  int error = find_program(name, path);
  if (error == 0) error = spawn_locally(process, path.data(), actions, attributes, arguments, variables);
  errno = before;
  return error;
}
