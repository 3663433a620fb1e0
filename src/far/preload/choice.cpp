#include "far/preload/choice.hpp"

#include "far/preload/elf_files.hpp"
#include "far/preload/program.hpp"
#include "far/preload/static_objects.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace tonari::far {

namespace {

constinit bool is_instrumented = false;
constinit bool is_parallel_job = false;

// Beginnings of file names: MPI and other libraries that write to memory from other processes, network cards and
// graphics cards; the kernel's asynchronous I/O; and Java, which handles SIGBUS itself and runs code on small stacks.
constexpr auto unsuited_libraries = std::to_array<std::string_view>(
    {"libmpi", "libibverbs.", "librdmacm.", "libfabric.", "libucp.", "libuct.", "libpsm2.", "libcuda.", "libamdhip64.",
     "libhsa-runtime64.", "libze_loader.", "libaio.", "liburing.", "libjli.", "libjvm."});

// Beginnings of functions that libc runs in threads of its own, which block all signals; and functions that switch
// stacks, which may be in far memory.
constexpr auto unsuited_imports = std::to_array<std::string_view>(
    {"aio_", "lio_listio", "timer_create", "mq_notify", "getaddrinfo_a", "makecontext"});

bool has_large_variables(const dl_phdr_info& object) noexcept {
  const std::size_t bytes_min = program.bytes_min.load(std::memory_order_relaxed);
  if (!is_large(object, bytes_min)) return false;
  std::array<StaticRange, 1> found;
  return find_static_objects(object, {.bytes_min = bytes_min, .reaches_everything = true}, found) != 0;
}

bool is_unsuited(const dl_phdr_info& object) noexcept {
  std::string_view name = object.dlpi_name != nullptr ? object.dlpi_name : "";
  name.remove_prefix(name.rfind('/') + 1);
  if (std::ranges::any_of(unsuited_libraries, [name](auto each) { return name.starts_with(each); })) return true;
  if (is_spared(object)) return false;
  const File file(path_of(object));
  if (!is_file_of(object, file)) return false;
  const Symbols symbols = dynamic_symbols_of(file);
  if (imports_one_of(unsuited_imports, symbols)) return true;
  // System calls with static variables are not trapped, because these are not in the filter's zone.
  return has_large_variables(object) && imports_one_of(harm_unreached, symbols);
}

int look_at(dl_phdr_info* object, std::size_t /*bytes*/, void* /*nothing*/) noexcept {
  return is_unsuited(*object) ? 1 : 0;
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

void look_at_program() noexcept {
  // The last function is part of programs that use Go, whose goroutines have small stacks.
  constexpr std::array functions{"__asan_init", "__tsan_init", "__msan_init", "__hwasan_init", "crosscall2"};
  is_instrumented = std::ranges::any_of(functions, [](auto each) { return ::dlsym(RTLD_DEFAULT, each) != nullptr; });
  constexpr std::array variables{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
  is_parallel_job = std::ranges::any_of(variables, [](auto each) { return std::getenv(each) != nullptr; });
}

bool suits_own_faults() noexcept {
  return !is_instrumented && !is_parallel_job && !is_traced() && ::dl_iterate_phdr(look_at, nullptr) == 0;
}

}  // namespace tonari::far
