#include "far/preload/choice.hpp"

#include "preload/system_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tonari::far {

namespace {

using preload::is_error;
using preload::system_call;

constinit bool has_sanitizer = false;

// Beginnings of file names. libjli and libjvm are Java's, which handles SIGBUS itself and runs code on small stacks.
constexpr std::array<std::string_view, 8> unsuited_libraries{"libmpi.",   "libmpich.", "libibverbs.", "libaio.",
                                                             "liburing.", "libjli.",   "libjvm.",     "libfabric."};

int find_unsuited(dl_phdr_info* library, std::size_t /*bytes*/, void* /*nothing*/) noexcept {
  std::string_view name = library->dlpi_name != nullptr ? library->dlpi_name : "";
  name.remove_prefix(name.rfind('/') + 1);
  return std::ranges::any_of(unsuited_libraries, [name](auto each) { return name.starts_with(each); }) ? 1 : 0;
}

bool is_traced() noexcept {
  const long file = system_call(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
  if (is_error(file)) return false;
  std::array<char, 1024> text;
  const long bytes = system_call(SYS_read, file, text.data(), text.size());
  (void)system_call(SYS_close, file);
  if (is_error(bytes)) return false;
  constexpr std::string_view tracer = "\nTracerPid:\t";
  const std::string_view all(text.data(), static_cast<std::size_t>(bytes));
  const std::size_t at = all.find(tracer);
  return at < all.size() - tracer.size() && all[at + tracer.size()] != '0';
}

}  // namespace

void look_for_sanitizers() noexcept {
  constexpr std::array names{"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init"};
  has_sanitizer =
      std::ranges::any_of(names, [](const char* each) { return ::dlsym(RTLD_DEFAULT, each) != nullptr; });
}

bool suits_own_faults() noexcept {
  return !has_sanitizer && !is_traced() && ::dl_iterate_phdr(find_unsuited, nullptr) == 0;
}

}  // namespace tonari::far
