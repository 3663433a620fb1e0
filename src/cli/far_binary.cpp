#include "cli/far_binary.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

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

bool has_interpreter(std::ifstream& file, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    if (!read_at(file, header.e_phoff + std::uint64_t{i} * header.e_phentsize, part)) return true;  // exec will tell
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

// "#!/usr/bin/env python3" runs env, which runs python3.
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
        "{} gets rights from its file (setuid, setgid or capabilities), and such programs load nothing "
        "that their user says",
        path);
  }
  if (!start.starts_with(ELFMAG) || start.size() < sizeof header) return std::nullopt;
  if (header.e_ident[EI_CLASS] == ELFCLASS32) {
    return fmt::format("{} is a 32-bit program: its addresses are too few for far memory", path);
  }
  if (!has_interpreter(file, header)) {
    return fmt::format(
        "{} is statically linked: nothing can be loaded into it; link it without -static, or use "
        "tonari/far.hpp in it",
        path);
  }
  return std::nullopt;
}

}  // namespace tonari::cli
