#pragma once

#include "far/preload/extents.hpp"
#include "preload/system_calls.hpp"

#include <elf.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The ELF files of the program and its libraries: their parts in memory, and their symbols.
namespace tonari::far {

using namespace preload;  // its tools

/// A file, mapped for reading. Nothing in it is trusted: a part that is not in the file is empty.
class File {
 public:
  explicit File(const char* path) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (!bytes_.empty()) (void)system_call(SYS_munmap, bytes_.data(), bytes_.size());
  }

  template <class T>
  [[nodiscard]] std::span<const T> part(std::uint64_t offset, std::uint64_t count) const noexcept {
    const bool is_inside = offset <= bytes_.size() && count <= (bytes_.size() - offset) / sizeof(T);
    if (!is_inside || offset % alignof(T) != 0) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), static_cast<std::size_t>(count)};
  }

 private:
  std::span<const std::byte> bytes_;
};

using Headers = std::span<const ElfW(Phdr)>;

inline Headers headers_of(const dl_phdr_info& object) noexcept { return {object.dlpi_phdr, object.dlpi_phnum}; }

inline Range range_of(const dl_phdr_info& object, const ElfW(Phdr) & part) noexcept {
  return {object.dlpi_addr + part.p_vaddr, part.p_memsz};
}
inline Range range_of(const dl_phdr_info& object, const ElfW(Sym) & symbol) noexcept {
  return {object.dlpi_addr + symbol.st_value, symbol.st_size};
}
inline bool is_writable(const ElfW(Phdr) & part) noexcept {
  return part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0;
}

/// Returns the path of the file of the program or of a library.
const char* path_of(const dl_phdr_info& object) noexcept;

/// Returns where the part of `whole` begins that stays writable.
Address end_of_read_only(const dl_phdr_info& object, Range whole) noexcept;

/// Returns true for files whose variables our handlers of faults and forks, and our helpers need: libc, the loader,
/// sanitizers, and this library.
bool is_spared(const dl_phdr_info& object) noexcept;

/// Returns true if the file may have `bytes_min` bytes of static variables.
bool is_large(const dl_phdr_info& object, std::size_t bytes_min) noexcept;

/// Returns true if `file` has the loaded parts. The file may have been replaced since it was loaded; and the program
/// may have been started by naming the loader.
bool is_file_of(const dl_phdr_info& object, const File& file) noexcept;

struct Symbols {
  std::span<const ElfW(Sym)> all;
  std::span<const char> names;
  bool is_complete = false;  // otherwise only imports and exports: the file was stripped
};

/// Returns all symbols, or only imports and exports if the file has no others.
Symbols symbols_of(const File& file) noexcept;
/// Returns imports and exports.
Symbols dynamic_symbols_of(const File& file) noexcept;

/// Returns true if a function is imported whose name begins with one of `names`.
bool imports_one_of(std::span<const std::string_view> names, const Symbols& symbols) noexcept;

/// Functions that may come to harm with static variables in far memory, where the kernel does not report its own
/// faults: locks that sleep in the kernel, and calls without a wrapper (see preload/wrapping.cpp).
inline constexpr std::array<std::string_view, 22> harm_unreached{"pthread_mutex_",
                                                                 "pthread_cond_",
                                                                 "pthread_rwlock_",
                                                                 "pthread_barrier_",
                                                                 "pthread_once",
                                                                 "sem_",
                                                                 "mtx_",
                                                                 "cnd_",
                                                                 "call_once",
                                                                 "pthread_attr_setstack",
                                                                 "sigaltstack",
                                                                 "makecontext",
                                                                 "syscall",
                                                                 "ioctl",
                                                                 "fcntl",
                                                                 "clock_nanosleep",
                                                                 "aio_",
                                                                 "lio_listio",
                                                                 "process_vm_",
                                                                 "sendfile",
                                                                 "copy_file_range",
                                                                 "io_uring_"};

}  // namespace tonari::far
