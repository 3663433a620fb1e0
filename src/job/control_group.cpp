#include "job/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

// Formats: cgroups(7) and proc(5), /proc/PID/cgroup and /proc/PID/mountinfo.
namespace tonari::job {

namespace {

namespace fs = std::filesystem;

enum class Version : std::uint8_t { v1, v2 };

// A mounted hierarchy of groups that can limit memory.
struct Hierarchy {
  Version version;
  fs::path shown;  // the group that is visible at `mounted`, as a path in the hierarchy
  fs::path mounted;
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{text};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

bool names_memory(const std::string& controllers) {
  return std::ranges::count(split(controllers, ','), std::string("memory")) != 0;
}

// Replaces \040 and the like, by which the kernel writes white space and backslashes.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 3 < text.size();
    plain += is_escape ? static_cast<char>(std::stoi(std::string(text.substr(i + 1, 3)), nullptr, 8)) : text[i];
    if (is_escape) i += 3;
  }
  return plain;
}

// 36 35 98:0 /shown /mounted rw,noatime master:1 - cgroup cgroup rw,memory
std::optional<Hierarchy> hierarchy_of(const std::string& mount) {
  const std::vector<std::string> words = split(mount, ' ');
  const auto dash = std::ranges::find(words, "-");
  if (words.size() < 6 || words.end() - dash < 4) return std::nullopt;
  const std::string& kind = dash[1];
  const bool is_v1 = kind == "cgroup" && names_memory(dash[3]);
  if (!is_v1 && kind != "cgroup2") return std::nullopt;
  return Hierarchy{is_v1 ? Version::v1 : Version::v2, unescaped(words[3]), unescaped(words[4])};
}

// Returns the path of this process's group in a hierarchy of this version. Lines: "4:memory:/path" and "0::/path".
std::optional<fs::path> own_group(const fs::path& root, Version version) {
  std::ifstream groups{root / "proc/self/cgroup"};
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool is_wanted = version == Version::v2 ? controllers.empty() : names_memory(controllers);
    if (is_wanted) return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> limit_in(const fs::path& group, Version version) {
  std::ifstream file{group / (version == Version::v2 ? "memory.max" : "memory.limit_in_bytes")};
  std::uint64_t bytes = 0;
  if (!(file >> bytes)) return std::nullopt;                  // no such file, or "max"
  constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;  // v1 writes its largest number of whole pages
  return bytes < no_limit ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> control_group_memory_limit(const fs::path& root) {
  std::optional<std::uint64_t> least;
  std::ifstream mounts{root / "proc/self/mountinfo"};
  for (std::string line; std::getline(mounts, line);) {
    const auto hierarchy = hierarchy_of(line);
    const auto group = hierarchy ? own_group(root, hierarchy->version) : std::nullopt;
    if (!group) continue;
    const fs::path top = root / hierarchy->mounted.relative_path();
    // A container may see its own group as the top, while the path is still that of the host.
    const fs::path below = group->lexically_relative(hierarchy->shown);
    const bool is_visible = !below.empty() && *below.begin() != "..";
    for (fs::path at = is_visible ? below : fs::path(".");; at = at.parent_path()) {
      if (const auto limit = limit_in(top / at, hierarchy->version)) least = std::min(least.value_or(*limit), *limit);
      if (at.empty() || at == ".") break;
    }
  }
  return least;
}

}  // namespace tonari::job
