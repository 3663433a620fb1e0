#include "far/preload/static_objects.hpp"

#include "far/channel.hpp"
#include "preload/system_calls.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace tonari::far {

using namespace preload;  // its tools

namespace {

/// A file, mapped for reading. Nothing in it is trusted: a part that is not in the file is empty.
class File {
 public:
  explicit File(const char* path) noexcept {
    const long file = system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (is_error(file)) return;
    struct stat status;
    if (!is_error(system_call(SYS_fstat, file, &status)) && status.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      const long at = system_call(SYS_mmap, nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (!is_error(at)) bytes_ = {static_cast<const std::byte*>(pointer_to(static_cast<Address>(at))), bytes};
    }
    (void)system_call(SYS_close, file);
  }
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

Headers headers_of(const dl_phdr_info& object) noexcept { return {object.dlpi_phdr, object.dlpi_phnum}; }

Range range_of(const dl_phdr_info& object, const ElfW(Phdr) & part) noexcept {
  return {object.dlpi_addr + part.p_vaddr, part.p_memsz};
}

Range range_of(const dl_phdr_info& object, const ElfW(Sym) & symbol) noexcept {
  return {object.dlpi_addr + symbol.st_value, symbol.st_size};
}

bool is_writable(const ElfW(Phdr) & part) noexcept { return part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0; }

// Returns where the part of `whole` begins that stays writable.
Address end_of_read_only(const dl_phdr_info& object, Range whole) noexcept {
  for (const ElfW(Phdr) & part : headers_of(object)) {
    const Range inside = range_of(object, part).cut_to(whole);
    if (part.p_type == PT_GNU_RELRO && !inside.is_empty()) return to_whole_pages(inside.end());
  }
  return whole.start;
}

bool is_spared(const dl_phdr_info& object) noexcept {
  static constinit const char own = 0;
  for (const ElfW(Phdr) & part : headers_of(object)) {
    if (part.p_type == PT_LOAD && address_of(&own) - range_of(object, part).start < part.p_memsz) return true;
  }
  constexpr std::array<std::string_view, 8> spared{"libc.so", "ld-linux", "libpthread", "libasan",
                                                   "libtsan", "libubsan", "liblsan",    "libhwasan"};
  std::string_view name = object.dlpi_name != nullptr ? object.dlpi_name : "";
  name.remove_prefix(name.rfind('/') + 1);
  return std::ranges::any_of(spared, [name](std::string_view each) { return name.starts_with(each); });
}

bool is_large(const dl_phdr_info& object, std::size_t bytes_min) noexcept {
  return std::ranges::any_of(headers_of(object), [&](const ElfW(Phdr) & part) {
    const Range whole = range_of(object, part);
    return is_writable(part) && whole.end() - std::min(whole.end(), end_of_read_only(object, whole)) >= bytes_min;
  });
}

// The file may have been replaced since it was loaded; and the program may have been started by naming the loader.
bool is_file_of(const dl_phdr_info& object, const File& file) noexcept {
  const auto header = file.part<ElfW(Ehdr)>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto parts = file.part<ElfW(Phdr)>(header[0].e_phoff, header[0].e_phnum);
  return parts.size() == object.dlpi_phnum && !parts.empty() &&
         std::memcmp(parts.data(), object.dlpi_phdr, parts.size_bytes()) == 0;
}

struct Symbols {
  std::span<const ElfW(Sym)> all;
  std::span<const char> names;
  bool is_complete = false;  // otherwise only imports and exports: the file was stripped
};

Symbols symbols_of(const File& file) noexcept {
  const ElfW(Ehdr) header = file.part<ElfW(Ehdr)>(0, 1)[0];
  const auto sections = file.part<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
  Symbols symbols;
  for (const ElfW(Shdr) & section : sections) {
    const bool is_complete = section.sh_type == SHT_SYMTAB;
    if (!is_complete && section.sh_type != SHT_DYNSYM) continue;
    const auto found = file.part<ElfW(Sym)>(section.sh_offset, section.sh_size / sizeof(ElfW(Sym)));
    if (found.empty() || section.sh_link >= sections.size()) continue;
    const ElfW(Shdr)& names = sections[section.sh_link];
    symbols = {found, file.part<char>(names.sh_offset, names.sh_size), is_complete};
    if (is_complete) break;
  }
  return symbols;
}

std::string_view name_of(const ElfW(Sym) & symbol, const Symbols& symbols) noexcept {
  if (symbol.st_name >= symbols.names.size()) return {};
  const auto rest = symbols.names.subspan(symbol.st_name);
  return {rest.data(), ::strnlen(rest.data(), rest.size())};
}

bool is_variable(const ElfW(Sym) & symbol) noexcept {
  return symbol.st_shndx != SHN_UNDEF && (symbol.st_info & 0xf) == STT_OBJECT;
}

// Small variables must not be far memory if the file imports one of these functions (names begin so). Children of
// clone() do not inherit far memory.
constexpr std::array<std::string_view, 2> harm_always{"clone", "__clone"};
// Where the kernel does not report its own faults, neither if it imports one of these: locks that sleep in the kernel,
// and calls without a wrapper (see preload/wrapping.cpp).
constexpr std::array<std::string_view, 23> harm_unreached{
    "pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_barrier_",      "pthread_once", "sem_",
    "mtx_",           "cnd_",          "call_once",       "pthread_attr_setstack", "sigaltstack",  "makecontext",
    "syscall",        "ioctl",         "fcntl",           "clock_nanosleep",       "aio_",         "lio_listio",
    "process_vm_",    "vmsplice",      "sendfile",        "copy_file_range",       "io_uring_"};

bool imports_one_of(std::span<const std::string_view> names, const Symbols& symbols) noexcept {
  return std::ranges::any_of(symbols.all, [&](const ElfW(Sym) & symbol) {
    if (symbol.st_shndx != SHN_UNDEF) return false;
    const std::string_view name = name_of(symbol, symbols);
    return std::ranges::any_of(names, [name](std::string_view each) { return name.starts_with(each); });
  });
}

class Search {
 public:
  Search(StaticSearch wanted, std::span<StaticRange> into) noexcept : wanted_(wanted), into_(into) {}

  void look_at(const dl_phdr_info& object) noexcept {
    const bool is_program = object.dlpi_name == nullptr || *object.dlpi_name == '\0';
    const File file(is_program ? "/proc/self/exe" : object.dlpi_name);
    if (!is_file_of(object, file)) return;
    const Symbols symbols = symbols_of(file);
    if (may_take_unnamed(symbols)) return take_unnamed(object, symbols);
    for (const ElfW(Sym) & symbol : symbols.all) {
      if (is_variable(symbol) && symbol.st_size >= wanted_.bytes_min) take(range_of(object, symbol), object);
    }
  }

  [[nodiscard]] std::size_t finish() noexcept {
    std::ranges::sort(into_.first(count_), {}, &StaticRange::start);
    return count_;
  }

 private:
  // Without any symbols, nothing tells what the file imports.
  [[nodiscard]] bool may_take_unnamed(const Symbols& symbols) const noexcept {
    return !symbols.is_complete && !symbols.all.empty() && !imports_one_of(harm_always, symbols) &&
           (wanted_.reaches_everything || !imports_one_of(harm_unreached, symbols));
  }

  // Takes .data and .bss, each as one variable, and cuts the small variables out that have symbols.
  void take_unnamed(const dl_phdr_info& object, const Symbols& symbols) noexcept {
    const std::size_t bytes_min = unnamed_factor * wanted_.bytes_min;
    const std::size_t before = count_;
    for (const ElfW(Phdr) & part : headers_of(object)) {
      if (!is_writable(part)) continue;
      const Range whole = range_of(object, part);
      const Address data = end_of_read_only(object, whole);
      const Address bss = std::max(data, to_whole_pages(whole.start + part.p_filesz));
      if (bss - data >= bytes_min) take({data, bss - data}, object);
      if (whole.end() > bss && whole.end() - bss >= bytes_min) take({bss, whole.end() - bss}, object);
    }
    if (count_ == before) return;
    for (const ElfW(Sym) & symbol : symbols.all) {
      if (symbol.st_shndx == SHN_UNDEF || (is_variable(symbol) && symbol.st_size >= wanted_.bytes_min)) continue;
      const Range small = range_of(object, symbol);
      const Address first = small.start / page_bytes * page_bytes;
      cut_out({first, to_whole_pages(small.end() + 1) - first});
    }
  }

  void cut_out(Range pages) noexcept {
    for (std::size_t i = 0; i < count_;) {
      const StaticRange range = into_[i];
      if (pages.cut_to(range).is_empty()) {
        ++i;
        continue;
      }
      into_[i] = into_[--count_];
      const Address low = std::max(range.start, pages.start);
      const Address high = std::min(range.end(), pages.end());
      for (const Range rest : {Range{range.start, low - range.start}, Range{high, range.end() - high}}) {
        if (rest.bytes >= wanted_.bytes_min) add({rest, range.is_in_file});
      }
    }
  }

  void take(Range variable, const dl_phdr_info& object) noexcept {
    const Address start = to_whole_pages(variable.start);
    const Address end = variable.end() / page_bytes * page_bytes;
    if (variable.end() < variable.start || end <= start) return;
    const Range pages{start, end - start};
    for (const ElfW(Phdr) & part : headers_of(object)) {
      const bool becomes_read_only = part.p_type == PT_GNU_RELRO;
      if (becomes_read_only && !pages.cut_to(range_of(object, part)).is_empty()) return;
    }
    for (const ElfW(Phdr) & part : headers_of(object)) {
      if (!is_writable(part) || pages.cut_to(range_of(object, part)) != pages) continue;
      const bool is_in_file = start < to_whole_pages(object.dlpi_addr + part.p_vaddr + part.p_filesz);
      insert({pages, is_in_file});
    }
  }

  // Joins ranges that overlap (two names of one variable) or meet.
  void insert(StaticRange range) noexcept {
    for (std::size_t i = 0; i < count_;) {
      const StaticRange& other = into_[i];
      if (other.is_in_file != range.is_in_file || other.end() < range.start || range.end() < other.start) {
        ++i;
        continue;
      }
      const Address start = std::min(range.start, other.start);
      range = {{start, std::max(range.end(), other.end()) - start}, range.is_in_file};
      into_[i] = into_[--count_];
      i = 0;
    }
    add(range);
  }

  void add(StaticRange range) noexcept {
    if (count_ < into_.size()) {
      into_[count_++] = range;
      return;
    }
    StaticRange& smallest = *std::ranges::min_element(into_, {}, &StaticRange::bytes);
    if (smallest.bytes < range.bytes) smallest = range;
  }

  StaticSearch wanted_;
  std::span<StaticRange> into_;
  std::size_t count_ = 0;
};

struct LargeFiles {
  std::size_t bytes_min;
  std::span<Address> into;
  std::size_t count = 0;
};

int note_large(dl_phdr_info* object, std::size_t /*bytes*/, void* found) noexcept {
  LargeFiles& files = *static_cast<LargeFiles*>(found);
  if (files.count == files.into.size()) return 1;
  if (is_large(*object, files.bytes_min) && !is_spared(*object))
    files.into[files.count++] = address_of(object->dlpi_phdr);
  return 0;
}

struct OneFile {
  Address headers;
  LoadedFile& file;
  Search search;
};

// The file cannot be unloaded meanwhile.
int look_at(dl_phdr_info* object, std::size_t /*bytes*/, void* one) noexcept {
  auto& [headers, file, search] = *static_cast<OneFile*>(one);
  if (address_of(object->dlpi_phdr) != headers) return 0;
  const std::string_view path = object->dlpi_name != nullptr ? object->dlpi_name : "";
  if (path.size() >= file.path.size()) return 1;
  file = {.headers = headers, .moved_by = object->dlpi_addr, .path = {}};
  std::ranges::copy(path, file.path.begin());
  search.look_at(*object);
  return 1;
}

}  // namespace

std::size_t find_large_files(std::size_t bytes_min, std::span<Address> into) noexcept {
  LargeFiles files{.bytes_min = bytes_min, .into = into};
  (void)::dl_iterate_phdr(note_large, &files);
  return files.count;
}

std::size_t find_static_objects(Address headers, StaticSearch wanted, LoadedFile& file,
                                std::span<StaticRange> into) noexcept {
  OneFile one{.headers = headers, .file = file, .search = Search(wanted, into)};
  (void)::dl_iterate_phdr(look_at, &one);
  return one.search.finish();
}

}  // namespace tonari::far
