#include "cli/launch_statistics.hpp"

#include "cli/table.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tonari::cli {

namespace {

using Field = std::uint64_t Statistics::*;
constexpr std::array<std::pair<std::string_view, Field>, 14> fields{{
    {"sent", &Statistics::messages_sent},
    {"received", &Statistics::messages_received},
    {"bytes sent", &Statistics::bytes_sent},
    {"direct", &Statistics::bytes_direct},
    {"buffered", &Statistics::bytes_buffered},
    {"posted", &Statistics::posted_now},
    {"max", &Statistics::posted_max},
    {"unexpected", &Statistics::unexpected_now},
    {"max", &Statistics::unexpected_max},
    {"bytes", &Statistics::unexpected_bytes_now},
    {"max", &Statistics::unexpected_bytes_max},
    {"held back", &Statistics::held_back},
    {"sleeps", &Statistics::sleeps},
    {"wake-ups", &Statistics::wake_ups},
}};

}  // namespace

std::string statistics_table(const job::Arena& arena) {
  std::vector<std::vector<std::string>> rows{{"rank"}};
  for (const auto& [name, field] : fields) rows.front().emplace_back(name);
  for (int rank = 0; rank < arena.ranks(); ++rank) {
    const Statistics counts = arena.block(rank).counters.read();
    auto& row = rows.emplace_back(1, std::to_string(rank));
    for (const auto& [name, field] : fields) row.push_back(std::to_string(counts.*field));
  }
  return format_table(rows);
}

}  // namespace tonari::cli
