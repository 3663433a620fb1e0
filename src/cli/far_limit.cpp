#include "cli/far_limit.hpp"

#include "cli/options.hpp"
#include "job/memory.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <cstddef>

namespace tonari::cli {

CLI::Validator share_or_size() {
  return {[](std::string& text) {
            const bool is_share = text.ends_with('%');
            const std::size_t value = parse_size(is_share ? text.substr(0, text.size() - 1) : text);
            constexpr std::size_t bytes_min = 1 << 20;
            if (!is_share && value != 0 && value < bytes_min) {
              return fmt::format("must be at least 1M, not {} bytes{}", text,
                                 value <= 100 ? fmt::format("; a share is written {}%", value) : std::string());
            }
            if (value != 0 && (!is_share || value <= 100)) return std::string();
            return fmt::format("must be a share, 1% to 100%, or a size, such as 512M, not '{}'", text);
          },
          ""};
}

far::Limit limit_of(std::string text) {
  if (!text.ends_with('%')) return {.bytes = parse_size(text)};
  text.pop_back();
  return {.percent = static_cast<std::uint32_t>(parse_size(text))};
}

std::string text_of(const far::Limit& limit) {
  return limit.percent != 0 ? fmt::format("{}%", limit.percent) : std::to_string(limit.bytes);
}

void check_lendable(std::uint64_t bytes) {
  if (bytes <= job::available_memory_bytes()) return;
  throw SetupError(fmt::format("--memory {}: {}; lend less", job::memory_text(bytes), job::available_memory_text()));
}

}  // namespace tonari::cli
