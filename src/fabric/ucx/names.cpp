#include "fabric/ucx/names.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>

namespace tonari::fabric::ucx {

namespace {

constexpr std::string_view prefix_of_ucx = "UCX_";

using Names = std::set<std::string, std::less<>>;

/// Returns UCX's settings as UCX prints them, one "UCX_NAME=VALUE" per line, including the settings that `ucx_info`
/// hides. Empty if there is no memory.
std::string print(const ucp_config_t* config) {
  constexpr int values = 1;  // as in ucs/config/types.h, which is not part of UCP's interface
  constexpr int hidden = 8;
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const stream = ::open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  library().config_print(config, stream, "", static_cast<ucs_config_print_flags_t>(values | hidden));
  std::fclose(stream);
  const std::unique_ptr<char, decltype(&std::free)> owned(text, &std::free);
  return owned ? std::string(text, bytes) : std::string{};
}

Names names_of(const ucp_config_t* config) {
  Names names;
  const std::string text = print(config);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with(prefix_of_ucx)) continue;
    names.emplace(line.substr(prefix_of_ucx.size(), line.find_first_of("= ") - prefix_of_ucx.size()));
  }
  return names;
}

}  // namespace

void check_names(const ucp_config_t* config, std::string_view prefix, std::span<const std::string_view> ours) {
  const std::string ours_begin = fmt::format("{}_{}", prefix, prefix_of_ucx);
  const Names known = names_of(config);
  if (known.empty()) return;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!variable.starts_with(ours_begin)) continue;
    const std::string_view name = variable.substr(ours_begin.size());
    if (known.contains(name) || std::ranges::find(ours, name) != ours.end()) continue;
    throw SetupError(
        fmt::format("{} would have no effect: UCX has no setting {} for one program alone (`ucx_info -c` lists these "
                    "under UCP); to set a transport's, use {}{}",
                    variable, name, prefix_of_ucx, name));
  }
}

}  // namespace tonari::fabric::ucx
