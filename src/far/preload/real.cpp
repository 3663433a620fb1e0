#include "far/preload/real.hpp"

#include "preload/system_calls.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstring>

namespace tonari::far {

using namespace preload;  // its tools

namespace {

// Early memory: pieces one after another, each preceded by its size.
constexpr std::size_t early_bytes_max = 64 * 1024;
constexpr std::size_t early_alignment = 16;
alignas(early_alignment) constinit std::array<std::byte, early_bytes_max> early{};
constinit std::atomic<std::size_t> early_used{0};

void* early_malloc(std::size_t bytes) noexcept {
  if (bytes > early_bytes_max) return failed(ENOMEM, nullptr);
  const std::size_t whole = (bytes + 2 * early_alignment - 1) / early_alignment * early_alignment;
  // relaxed: each caller gets a piece of its own
  const std::size_t at = early_used.fetch_add(whole, std::memory_order_relaxed);
  if (at + whole > early_bytes_max) return failed(ENOMEM, nullptr);
  std::memcpy(&early[at], &bytes, sizeof bytes);
  return &early[at + early_alignment];
}
void* early_calloc(std::size_t count, std::size_t bytes) noexcept {
  std::size_t all = 0;
  return __builtin_mul_overflow(count, bytes, &all) ? failed(ENOMEM, nullptr) : early_malloc(all);
}
void* early_realloc(void* start, std::size_t bytes) noexcept {
  void* const to = early_malloc(bytes);
  if (to == nullptr || start == nullptr) return to;
  const std::size_t before = early_bytes(start);
  return std::memcpy(to, start, before < bytes ? before : bytes);
}
void early_free(void* /*start*/) noexcept {}
void* early_memalign(std::size_t alignment, std::size_t bytes) noexcept {
  return alignment <= early_alignment ? early_malloc(bytes) : failed(ENOMEM, nullptr);
}
int early_posix_memalign(void** start, std::size_t alignment, std::size_t bytes) noexcept {
  *start = early_memalign(alignment, bytes);
  return *start != nullptr ? 0 : ENOMEM;
}
void* early_valloc(std::size_t /*bytes*/) noexcept { return failed(ENOMEM, nullptr); }
std::size_t early_usable(void* start) noexcept { return early_bytes(start); }

// The mapping functions are system calls, which need no look-up.
int answer(long result) noexcept { return is_error(result) ? failed(error_of(result), -1) : 0; }
void* address(long result) noexcept {
  return is_error(result) ? failed(error_of(result), MAP_FAILED) : reinterpret_cast<void*>(result);
}
void* early_mmap(void* start, std::size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept {
  return address(system_call(SYS_mmap, start, bytes, protection, flags, descriptor, offset));
}
int early_munmap(void* start, std::size_t bytes) noexcept { return answer(system_call(SYS_munmap, start, bytes)); }
void* early_mremap(void* start, std::size_t bytes, std::size_t wanted, int flags, ...) noexcept {
  va_list rest;
  va_start(rest, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  return address(system_call(SYS_mremap, start, bytes, wanted, flags, to));
}
int early_madvise(void* start, std::size_t bytes, int advice) noexcept {
  return answer(system_call(SYS_madvise, start, bytes, advice));
}
int early_posix_madvise(void* /*start*/, std::size_t /*bytes*/, int /*advice*/) noexcept { return 0; }
int early_mprotect(void* start, std::size_t bytes, int protection) noexcept {
  return answer(system_call(SYS_mprotect, start, bytes, protection));
}

constexpr Real early_functions{early_malloc,   early_calloc,   early_realloc,        early_free,
                               early_memalign, early_memalign, early_posix_memalign, early_valloc,
                               early_valloc,   early_usable,   early_mmap,           early_munmap,
                               early_mremap,   early_madvise,  early_posix_madvise,  early_mprotect};
constinit Real found = early_functions;

enum : std::uint32_t { is_unknown, is_looked_up, is_known };
constinit std::atomic<std::uint32_t> state{is_unknown};

template <class Function>
void look_up(Function& function, const char* name) noexcept {
  if (void* const symbol = ::dlsym(RTLD_NEXT, name)) function = reinterpret_cast<Function>(symbol);
}

void look_up_all() noexcept {
  look_up(found.malloc, "malloc");
  look_up(found.calloc, "calloc");
  look_up(found.realloc, "realloc");
  look_up(found.free, "free");
  look_up(found.memalign, "memalign");
  look_up(found.aligned_alloc, "aligned_alloc");
  look_up(found.posix_memalign, "posix_memalign");
  look_up(found.valloc, "valloc");
  look_up(found.pvalloc, "pvalloc");
  look_up(found.malloc_usable_size, "malloc_usable_size");
  look_up(found.mmap, "mmap");
  look_up(found.munmap, "munmap");
  look_up(found.mremap, "mremap");
  look_up(found.madvise, "madvise");
  look_up(found.posix_madvise, "posix_madvise");
  look_up(found.mprotect, "mprotect");
}

[[gnu::cold]] const Real& look_up_once() noexcept {
  std::uint32_t seen = is_unknown;
  // If the state is is_looked_up, the caller is the look-up itself, or another thread, which does not wait for it.
  if (!state.compare_exchange_strong(seen, is_looked_up, std::memory_order_acquire)) {
    return seen == is_known ? found : early_functions;
  }
  look_up_all();
  state.store(is_known, std::memory_order_release);  // (1) after the functions; pairs with (2)
  return found;
}

}  // namespace

const Real& real() noexcept {
  if (state.load(std::memory_order_acquire) == is_known) [[likely]]
    return found;  // (2)
  return look_up_once();
}

bool is_early(const void* start) noexcept {
  return reinterpret_cast<std::uintptr_t>(start) - reinterpret_cast<std::uintptr_t>(early.data()) < early_bytes_max;
}

std::size_t early_bytes(const void* start) noexcept {
  std::size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(start) - early_alignment, sizeof bytes);
  return bytes;
}

}  // namespace tonari::far
