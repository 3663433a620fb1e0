#include "far/preload/libraries.hpp"

#include "far/preload/program.hpp"
#include "far/preload/statics.hpp"
#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/system_calls.hpp"

#include <fcntl.h>
#include <limits.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// Wraps dlopen: the static variables of the libraries that it loads become far memory before it returns. dlmopen is not
// wrapped: a library in a namespace of its own has a libc of its own, whose calls would not reach far memory.
TONARI_NEXT(dlopen)

namespace tonari::far {

namespace {

using Path = std::array<char, PATH_MAX>;

// Returns false if the path is too long.
bool join(Path& path, std::string_view folder, std::string_view name) noexcept {
  if (folder.size() + 1 + name.size() >= path.size()) return false;
  char* end = std::ranges::copy(folder, path.data()).out;
  *end++ = '/';
  *std::ranges::copy(name, end).out = 0;
  return true;
}

link_map* file_of(const void* code) noexcept {
  Dl_info info;
  void* file = nullptr;
  return ::dladdr1(code, &info, &file, RTLD_DL_LINKMAP) != 0 ? static_cast<link_map*>(file) : nullptr;
}

/// The folders in which glibc looks for a library without a path, if code of `caller` loads it, in this order. The
/// loader's cache comes in between.
class SearchedFolders {
 public:
  explicit SearchedFolders(link_map* caller) noexcept {
    auto* const folders = reinterpret_cast<Dl_serinfo*>(memory_.data());
    Dl_serinfo size;
    if (::dlinfo(caller, RTLD_DI_SERINFOSIZE, &size) != 0 || size.dls_size > memory_.size()) return;
    *folders = size;
    if (::dlinfo(caller, RTLD_DI_SERINFO, folders) == 0) folders_ = {&folders->dls_serpath[0], folders->dls_cnt};
  }

  /// Writes the path of `name` in the first folder that has it. Returns that folder, or nullptr.
  const char* find(std::string_view name, Path& path) const noexcept {
    for (const Dl_serpath& each : folders_) {
      const bool fits = join(path, each.dls_name, name);
      if (fits && !is_error(system_call(SYS_faccessat, AT_FDCWD, path.data(), R_OK))) return each.dls_name;
    }
    return nullptr;
  }
  [[nodiscard]] bool has(std::string_view folder) const noexcept {
    return std::ranges::any_of(folders_, [folder](const Dl_serpath& each) { return folder == each.dls_name; });
  }

 private:
  alignas(Dl_serinfo) std::array<std::byte, 8 << 10> memory_;
  std::span<const Dl_serpath> folders_;
};

// Writes the path of a library in a folder that only the calling file names.
bool find_by_file(link_map* caller, std::string_view name, Path& path) noexcept {
  static constinit const char own = 0;
  const SearchedFolders folders(caller);
  const char* const folder = folders.find(name, path);
  return folder != nullptr && !SearchedFolders(file_of(&own)).has(folder);
}

// Writes the path if `name` begins with the folder of the calling file.
bool expand_origin(link_map* caller, std::string_view name, Path& path) noexcept {
  for (const std::string_view origin : {std::string_view("$ORIGIN/"), std::string_view("${ORIGIN}/")}) {
    if (!name.starts_with(origin)) continue;
    Path folder{};
    return ::dlinfo(caller, RTLD_DI_ORIGIN, folder.data()) == 0 &&
           join(path, folder.data(), name.substr(origin.size()));
  }
  return false;
}

// Writes the path of a library that glibc finds only because of the calling file. A library that is loaded already
// needs none.
bool find_as(const void* code, const char* name, Path& path) noexcept {
  const std::string_view text = name != nullptr ? name : "";
  const bool has_path = text.find('/') != text.npos;
  if (text.empty() || (has_path && !text.starts_with('$'))) return false;
  link_map* const caller = file_of(code);
  if (caller == nullptr) return false;
  if (has_path) return expand_origin(caller, text, path);
  if (!find_by_file(caller, text, path)) return false;
  void* const loaded = next::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded != nullptr) (void)::dlclose(loaded);
  return loaded == nullptr;
}

// Loads a library as the code at `caller` would. For glibc, this library is the caller.
void* open_as(const void* caller, const char* name, int mode) noexcept {
  Path path;
  if (find_as(caller, name, path)) {
    if (void* const library = next::dlopen(path.data(), mode)) return library;
  }
  return next::dlopen(name, mode);
}

}  // namespace

bool keep_loaded(const LoadedFile& file) noexcept {
  if (file.path.front() == 0) return true;  // the program
  const auto* const library =
      static_cast<const link_map*>(next::dlopen(file.path.data(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE));
  if (library == nullptr) (void)::dlerror();  // not an error of the program
  return library != nullptr && library->l_addr == file.moved_by;
}

}  // namespace tonari::far

TONARI_EXPORTED void* dlopen(const char* name, int mode) noexcept {
  void* const library = tonari::far::open_as(__builtin_return_address(0), name, mode);
  if (library != nullptr) tonari::far::use_static_memory_of_libraries();
  return library;
}
