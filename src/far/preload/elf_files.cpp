#include "far/preload/elf_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace tonari::far {

namespace {

std::string_view name_of(const ElfW(Sym) & symbol, const Symbols& symbols) noexcept {
  if (symbol.st_name >= symbols.names.size()) return {};
  const auto rest = symbols.names.subspan(symbol.st_name);
  return {rest.data(), ::strnlen(rest.data(), rest.size())};
}

// Returns the symbols of the last section of type `wanted`, or else `otherwise`.
Symbols symbols_in(const File& file, ElfW(Word) wanted, ElfW(Word) otherwise) noexcept {
  const ElfW(Ehdr) header = file.part<ElfW(Ehdr)>(0, 1)[0];
  const auto sections = file.part<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
  Symbols symbols;
  for (const ElfW(Shdr) & section : sections) {
    if (section.sh_type != wanted && section.sh_type != otherwise) continue;
    const auto found = file.part<ElfW(Sym)>(section.sh_offset, section.sh_size / sizeof(ElfW(Sym)));
    if (found.empty() || section.sh_link >= sections.size()) continue;
    const ElfW(Shdr)& names = sections[section.sh_link];
    symbols = {found, file.part<char>(names.sh_offset, names.sh_size), section.sh_type == SHT_SYMTAB};
    if (section.sh_type == wanted) break;
  }
  return symbols;
}

}  // namespace

File::File(const char* path) noexcept {
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

const char* path_of(const dl_phdr_info& object) noexcept {
  const bool is_program = object.dlpi_name == nullptr || *object.dlpi_name == '\0';
  return is_program ? "/proc/self/exe" : object.dlpi_name;
}

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

bool is_file_of(const dl_phdr_info& object, const File& file) noexcept {
  const auto header = file.part<ElfW(Ehdr)>(0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) return false;
  const auto parts = file.part<ElfW(Phdr)>(header[0].e_phoff, header[0].e_phnum);
  return parts.size() == object.dlpi_phnum && !parts.empty() &&
         std::memcmp(parts.data(), object.dlpi_phdr, parts.size_bytes()) == 0;
}

Symbols symbols_of(const File& file) noexcept { return symbols_in(file, SHT_SYMTAB, SHT_DYNSYM); }
Symbols dynamic_symbols_of(const File& file) noexcept { return symbols_in(file, SHT_DYNSYM, SHT_DYNSYM); }

bool imports_one_of(std::span<const std::string_view> names, const Symbols& symbols) noexcept {
  return std::ranges::any_of(symbols.all, [&](const ElfW(Sym) & symbol) {
    if (symbol.st_shndx != SHN_UNDEF) return false;
    const std::string_view name = name_of(symbol, symbols);
    return std::ranges::any_of(names, [name](std::string_view each) { return name.starts_with(each); });
  });
}

}  // namespace tonari::far
