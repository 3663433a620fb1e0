#include "cli/preload.hpp"

#include "cli/binary.hpp"
#include "cli/launch_job.hpp"
#include "cli/launch_program.hpp"
#include "pager/userfaultfd.hpp"

#include <tonari/status.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace tonari::cli {

namespace {

// Whether the kernel reports only the faults of the program itself, and none of its system calls.
bool calls_fail_on_absent_pages() {
  try {
    return pager::Userfaultfd().reach() == pager::Reach::user_mode;
  } catch (const SetupError&) {
    return false;  // no faults are reported at all: code that needs them throws its own error
  }
}

std::string_view preloads_of_environment(const LaunchOptions& options) {
  constexpr std::string_view name = "LD_PRELOAD=";
  for (const std::string& pair : options.environment) {
    if (pair.starts_with(name)) return std::string_view(pair).substr(name.size());
  }
  const char* const inherited = std::getenv("LD_PRELOAD");
  return inherited != nullptr ? inherited : std::string_view{};
}

}  // namespace

std::string preload_path(std::string_view name) {
  const auto prefix = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
  for (const char* const folder : {TONARI_LIBDIR, "lib"}) {
    auto path = prefix / folder / "tonari" / name;
    if (std::filesystem::exists(path)) return path;
  }
  throw SetupError(
      fmt::format("{} is not in {}: install tonari completely", name, (prefix / TONARI_LIBDIR / "tonari").string()));
}

// Distributions put it beside libc.
std::string path_of_jemalloc() {
  constexpr const char* name = "libjemalloc.so.2";
  Dl_info libc{};
  std::vector<std::filesystem::path> folders{"/usr/local/lib", "/usr/lib64", "/usr/lib"};
  if (::dladdr(reinterpret_cast<const void*>(&std::getenv), &libc) != 0) {
    folders.insert(folders.begin(), std::filesystem::path(libc.dli_fname).parent_path());
  }
  for (const auto& folder : folders) {
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  throw SetupError(
      fmt::format("--heap: {} is not in {}; install it: apt-get install libjemalloc2, or dnf install jemalloc", name,
                  folders.front().string()));
}

std::string with_preload(const std::string& path, std::string_view before) {
  return before.empty() ? path : fmt::format("{}:{}", path, before);
}

std::optional<std::string> preload_of_ranks(const LaunchOptions& options) {
  const Settings settings = settings_of_ranks(options);
  const bool has_copies = options.hosts || settings.apart != "none";
  if (!has_copies || !settings.wrap_calls || !calls_fail_on_absent_pages()) return std::nullopt;
  const std::string program = path_of_program(options.program.front());
  if (why_not_preloaded(program) || insists_on_its_libraries(program)) return std::nullopt;
  return with_preload(preload_path("libtonari_share_preload.so"), preloads_of_environment(options));
}

}  // namespace tonari::cli
