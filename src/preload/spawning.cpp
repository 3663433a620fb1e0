#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <spawn.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

// Wraps posix_spawn. libc blocks all signals while it reads the arguments and starts the child, which the kernel then
// lets read them. Neither of the two could meet absent memory, so both get copies in local memory.
TONARI_NEXT(posix_spawn)
TONARI_NEXT(posix_spawnp)

using namespace tonari::preload;

namespace {

using Spawn = int (*)(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const*,
                      char* const*);

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

/// Local copies of a program's name, arguments and variables.
class LocalTexts {
 public:
  LocalTexts(const char* path, char* const* arguments, char* const* variables) noexcept
      : local_(bytes_of(arguments) + bytes_of(variables) + bytes_of(path)) {
    if (local_.start() == nullptr) return;
    rest_ = {reinterpret_cast<char*>(local_.start()), local_.bytes()};
    arguments_ = copy(arguments);
    variables_ = copy(variables);
    path_ = copy(path);
  }
  /// Returns nullptr, as the others do, if there is no memory.
  [[nodiscard]] const char* path() const noexcept { return path_; }
  [[nodiscard]] char** arguments() const noexcept { return arguments_; }
  [[nodiscard]] char** variables() const noexcept { return variables_; }

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
  char** copy(char* const* list) noexcept {
    if (list == nullptr) return nullptr;
    rest_ = rest_.subspan(std::min(-address_of(rest_.data()) % sizeof(char*), rest_.size()));  // aligned
    const std::size_t length = length_of(list);
    if (rest_.size() < (length + 1) * sizeof(char*)) return nullptr;
    char** const start = reinterpret_cast<char**>(rest_.data());
    rest_ = rest_.subspan((length + 1) * sizeof(char*));
    for (std::size_t i = 0; i < length; ++i) start[i] = copy(list[i]);
    start[length] = nullptr;
    return start;
  }

  Local local_;
  std::span<char> rest_;
  char** arguments_ = nullptr;
  char** variables_ = nullptr;
  const char* path_ = nullptr;
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

int spawn(Spawn call, pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  if (!may_be_unreached()) return call(process, path, actions, attributes, arguments, variables);
  const int before = errno;
  const LocalTexts texts(path, arguments, variables);
  if (texts.path() == nullptr) return ENOMEM;
  const LocalValue<posix_spawn_file_actions_t> actions_copy(actions);
  const LocalValue<posix_spawnattr_t> attributes_copy(attributes);
  pid_t started = 0;
  const int error =
      call(&started, texts.path(), actions_copy.get(), attributes_copy.get(), texts.arguments(), texts.variables());
  if (error == 0 && process != nullptr) *process = started;
  errno = before;
  return error;
}

}  // namespace

TONARI_EXPORTED int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  const Spawn call = [](auto... each) { return next::posix_spawn(each...); };
  return spawn(call, process, path, actions, attributes, arguments, variables);
}
TONARI_EXPORTED int posix_spawnp(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                                 const posix_spawnattr_t* attributes, char* const* arguments, char* const* variables) {
  const Spawn call = [](auto... each) { return next::posix_spawnp(each...); };
  return spawn(call, process, path, actions, attributes, arguments, variables);
}
