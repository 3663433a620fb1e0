#include "driver/paths.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace tonari::bench::driver {

namespace fs = std::filesystem;

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

fs::path tonari_command() { return program_folder().parent_path().parent_path() / "bin" / "tonari"; }

fs::path worker() { return program_folder() / "bench-worker"; }

fs::path rival(std::string_view name, std::string_view benchmark) {
  return program_folder() / "rivals" / name / benchmark;
}

bool is_program(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

bool in_path(std::string_view name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (is_program(fs::path(folder) / name)) return true;
  }
  return false;
}

}  // namespace tonari::bench::driver
