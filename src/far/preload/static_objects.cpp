#include "far/preload/static_objects.hpp"

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

bool is_writable(const ElfW(Phdr) & part) noexcept { return part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0; }

// The file may have been replaced since it was loaded; and the program may have been started by naming the loader.
bool is_file_of(const dl_phdr_info& object, const File& file) noexcept {
  const auto header = file.part<ElfW(Ehdr)>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto parts = file.part<ElfW(Phdr)>(header[0].e_phoff, header[0].e_phnum);
  return parts.size() == object.dlpi_phnum && !parts.empty() &&
         std::memcmp(parts.data(), object.dlpi_phdr, parts.size_bytes()) == 0;
}

// Returns all symbols; of a stripped file, the symbols that other files may use.
std::span<const ElfW(Sym)> symbols_of(const File& file) noexcept {
  const ElfW(Ehdr) header = file.part<ElfW(Ehdr)>(0, 1)[0];
  std::span<const ElfW(Sym)> symbols;
  for (const ElfW(Shdr) & section : file.part<ElfW(Shdr)>(header.e_shoff, header.e_shnum)) {
    const bool has_all = section.sh_type == SHT_SYMTAB;
    if (!has_all && section.sh_type != SHT_DYNSYM) continue;
    const auto found = file.part<ElfW(Sym)>(section.sh_offset, section.sh_size / sizeof(ElfW(Sym)));
    if (has_all && !found.empty()) return found;
    symbols = found;
  }
  return symbols;
}

class Search {
 public:
  Search(std::size_t bytes_min, std::span<StaticRange> into) noexcept : bytes_min_(bytes_min), into_(into) {}

  void look_at(const dl_phdr_info& object) noexcept {
    const auto is_large = [this](const ElfW(Phdr) & part) { return is_writable(part) && part.p_memsz >= bytes_min_; };
    if (std::ranges::none_of(headers_of(object), is_large) || is_spared(object)) return;
    const bool is_program = object.dlpi_name == nullptr || *object.dlpi_name == '\0';
    const File file(is_program ? "/proc/self/exe" : object.dlpi_name);
    if (!is_file_of(object, file)) return;
    for (const ElfW(Sym) & symbol : symbols_of(file)) {
      if (symbol.st_size < bytes_min_ || symbol.st_shndx == SHN_UNDEF || (symbol.st_info & 0xf) != STT_OBJECT) continue;
      take({object.dlpi_addr + symbol.st_value, symbol.st_size}, object);
    }
  }

  [[nodiscard]] std::size_t finish() noexcept {
    std::ranges::sort(into_.first(count_), {}, &StaticRange::start);
    return count_;
  }

 private:
  [[nodiscard]] static bool is_spared(const dl_phdr_info& object) noexcept {
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
    if (count_ < into_.size()) {
      into_[count_++] = range;
      return;
    }
    StaticRange& smallest = *std::ranges::min_element(into_, {}, &StaticRange::bytes);
    if (smallest.bytes < range.bytes) smallest = range;
  }

  std::size_t bytes_min_;
  std::span<StaticRange> into_;
  std::size_t count_ = 0;
};

int look_at(dl_phdr_info* object, std::size_t /*bytes*/, void* search) noexcept {
  static_cast<Search*>(search)->look_at(*object);
  return 0;
}

}  // namespace

std::size_t find_static_objects(std::size_t bytes_min, std::span<StaticRange> into) noexcept {
  Search search(bytes_min, into);
  (void)::dl_iterate_phdr(look_at, &search);
  return search.finish();
}

}  // namespace tonari::far
