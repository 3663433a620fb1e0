#include "job/pmix/library.hpp"

#include <tonari/status.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string>

namespace tonari::job::pmix {

namespace {

constexpr const char* library_name = "libpmix.so.2";
constexpr const char* remedy = "install PMIx 4 or later (apt-get install libpmix2)";

/// Opens the launcher's own library, if PMIX_PREFIX names its folder. A library older than the server makes Open MPI 5
/// print warnings. An MPI that is loaded later finds the library that it was built with.
void* open_launchers_own() noexcept {
  const char* const prefix = std::getenv("PMIX_PREFIX");
  if (prefix == nullptr || *prefix == '\0') return nullptr;
  for (const char* const folder : {"lib", "lib64", "lib/openmpi"}) {
    const std::string path = fmt::format("{}/{}/{}", prefix, folder, library_name);
    if (void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

void* open_library() {
  // A program that uses PMIx itself, perhaps through MPI, has already loaded a library. A second one would be a second
  // connection of the same rank.
  if (void* const handle = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return handle;
  if (void* const handle = open_launchers_own()) return handle;
  if (void* const handle = ::dlopen(library_name, RTLD_NOW | RTLD_LOCAL)) return handle;
  throw SetupError(fmt::format("{}; {}", ::dlerror(), remedy));
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(handle, name));
  if (function == nullptr) throw SetupError(fmt::format("{} has no {}; {}", library_name, name, remedy));
}

Library load() {
  void* const handle = open_library();
  Library found{};
  find(handle, "PMIx_Init", found.init);
  find(handle, "PMIx_Finalize", found.finalize);
  find(handle, "PMIx_Put", found.put);
  find(handle, "PMIx_Commit", found.commit);
  find(handle, "PMIx_Fence_nb", found.fence_nb);
  find(handle, "PMIx_Get", found.get);
  find(handle, "PMIx_Register_event_handler", found.register_event_handler);
  find(handle, "PMIx_Deregister_event_handler", found.deregister_event_handler);
  find(handle, "PMIx_Error_string", found.error_string);
  find(handle, "PMIx_Abort", found.abort);
  return found;
}

}  // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

}  // namespace tonari::job::pmix
