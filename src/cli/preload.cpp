#include "cli/preload.hpp"

#include "cli/binary.hpp"
#include "cli/launch_job.hpp"
#include "cli/launch_program.hpp"
#include "pager/userfaultfd.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

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
