#include "cli/binary.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

namespace tonari::cli {

namespace {

template <class T>
bool read_at(std::ifstream& file, std::uint64_t offset, T& into) {
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&into), sizeof into));
}

std::vector<Elf64_Phdr> parts_of(std::ifstream& file, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> parts(header.e_phnum);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!read_at(file, header.e_phoff + i * header.e_phentsize, parts[i])) return {};
  }
  return parts;
}

// Returns the offset in the file of the byte that is loaded at `address`; 0 if no part of the file is loaded there.
std::uint64_t offset_of(Elf64_Addr address, const std::vector<Elf64_Phdr>& parts) {
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type == PT_LOAD && address - part.p_vaddr < part.p_filesz) return part.p_offset + address - part.p_vaddr;
  }
  return 0;
}

// Calls visit(name) for each library that a dynamically linked program names.
template <class Visit>
void for_each_library(std::ifstream& file, const Elf64_Ehdr& header, Visit visit) {
  const std::vector<Elf64_Phdr> parts = parts_of(file, header);
  std::vector<Elf64_Xword> names;  // offsets in the table of strings
  std::uint64_t strings = 0;
  for (const Elf64_Phdr& part : parts) {
    if (part.p_type != PT_DYNAMIC) continue;
    Elf64_Dyn entry;
    for (std::uint64_t at = 0; at < part.p_filesz && read_at(file, part.p_offset + at, entry); at += sizeof entry) {
      if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
      if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr, parts);
    }
  }
  for (const Elf64_Xword name : names) {
    std::string text;
    file.clear();
    file.seekg(static_cast<std::streamoff>(strings + name));
    if (std::getline(file, text, '\0')) visit(std::string_view(text));
  }
}

std::uint64_t largest_variable(std::ifstream& file, const Elf64_Shdr& symbols) {
  std::uint64_t bytes = 0;
  Elf64_Sym symbol;
  for (std::uint64_t at = 0; at < symbols.sh_size && read_at(file, symbols.sh_offset + at, symbol);
       at += sizeof symbol) {
    const bool is_variable = ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT && symbol.st_shndx != SHN_UNDEF;
    if (is_variable) bytes = std::max(bytes, std::uint64_t{symbol.st_size});
  }
  return bytes;
}

bool has_interpreter(std::ifstream& file, const Elf64_Ehdr& header) {
  const std::vector<Elf64_Phdr> parts = parts_of(file, header);
  if (parts.empty()) return true;  // exec reports what is wrong with the file
  return std::ranges::any_of(parts, [](const Elf64_Phdr& part) { return part.p_type == PT_INTERP; });
}

// Returns nothing if the file is no 64-bit ELF file.
std::optional<Elf64_Ehdr> header_of(std::ifstream& file) {
  Elf64_Ehdr header;
  if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  return header.e_ident[EI_CLASS] == ELFCLASS64 ? std::optional(header) : std::nullopt;
}

// Returns the first word of a script's first line: env for "#!/usr/bin/env python3".
std::string interpreter_of(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  if (first == line.npos) return {};
  return std::string{line.substr(first, line.find_first_of(" \t", first) - first)};
}

bool takes_rights_from_its_file(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return false;
  const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid();
  const bool changes_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  const bool has_capabilities = ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
  return changes_user || changes_group || (has_capabilities && ::geteuid() != 0);
}

}  // namespace

std::optional<std::string> why_not_preloaded(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  std::memset(&header, 0, sizeof header);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const std::string_view start(reinterpret_cast<const char*>(&header), static_cast<std::size_t>(file.gcount()));
  file.clear();

  if (start.starts_with("#!")) {
    std::string line;
    file.seekg(2);
    std::getline(file, line);
    const std::string interpreter = interpreter_of(line);
    if (interpreter.empty() || interpreter == path) return std::nullopt;
    const auto why = why_not_preloaded(interpreter);
    return why ? std::optional(fmt::format("{} is run by {}", path, *why)) : std::nullopt;
  }
  if (takes_rights_from_its_file(path)) {
    return fmt::format(
        "{} gets rights from its file (setuid, setgid or capabilities); the system loads no libraries of the user's "
        "into "
        "such programs",
        path);
  }
  if (!start.starts_with(ELFMAG) || start.size() < sizeof header) return std::nullopt;
  if (header.e_ident[EI_CLASS] == ELFCLASS32) {
    return fmt::format("{} is a 32-bit program: its address space is too small for far memory", path);
  }
  if (!has_interpreter(file, header)) {
    return fmt::format("{} is statically linked: no library can be loaded into it; link it without -static", path);
  }
  return std::nullopt;
}

bool insists_on_its_libraries(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto header = header_of(file);
  if (!header) return false;
  bool insists = false;
  for_each_library(file, *header, [&](std::string_view name) {
    insists = insists || name.starts_with("libasan.so") || name.starts_with("libtsan.so");
  });
  return insists;
}

Statics statics_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const auto header = header_of(file);
  Statics found;
  if (!header) return found;
  for (const Elf64_Phdr& part : parts_of(file, *header)) {
    if (part.p_type == PT_LOAD && (part.p_flags & PF_W) != 0) found.bytes += part.p_memsz;
  }
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    Elf64_Shdr section;
    if (!read_at(file, header->e_shoff + i * header->e_shentsize, section)) break;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    found.has_symbols = found.has_symbols || section.sh_type == SHT_SYMTAB;
    found.largest_bytes = std::max(found.largest_bytes, largest_variable(file, section));
  }
  return found;
}

}  // namespace tonari::cli
