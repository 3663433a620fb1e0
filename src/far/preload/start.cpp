#include "far/channel.hpp"
#include "far/preload/begin.hpp"
#include "far/preload/real.hpp"
#include "preload/next.hpp"

#include <cstdlib>
#include <cstring>
#include <string_view>

// Runs before main(), as the environment says.
namespace tonari::far {

namespace {

constexpr std::string_view own_name = "libtonari_far_preload.so";

void take_out_of_list(char* list) noexcept {
  char* to = list;
  for (const char* from = list + std::strspn(list, ": "); *from != '\0'; from += std::strspn(from, ": ")) {
    const std::string_view entry(from, std::strcspn(from, ": "));
    from += entry.size();
    if (entry.ends_with(own_name)) continue;
    if (to != list) *to++ = ':';
    std::memmove(to, entry.data(), entry.size());
    to += entry.size();
  }
  *to = '\0';
}

void leave_preloads() noexcept {
  char* const list = std::getenv("LD_PRELOAD");
  if (list == nullptr) return;
  take_out_of_list(list);
  if (*list == '\0') ::unsetenv("LD_PRELOAD");
}

// MIN_BYTES@NAME
void read_door(const char* text) noexcept {
  char* name = nullptr;
  const unsigned long long bytes_min = std::strtoull(text, &name, 10);
  if (bytes_min != 0 && *name == '@') may_begin(name + 1, bytes_min);
}

// Child processes do not inherit the variables that are for this program alone.
[[gnu::constructor]] void start_program() noexcept {
  (void)real();
  find_all_next();
  const char* const door = std::getenv(door_variable);
  if (door != nullptr) read_door(door);
  const char* const number = std::getenv(socket_variable);
  if (number == nullptr || !begin(std::atoi(number))) return;
  ::unsetenv(socket_variable);
  if (door == nullptr) leave_preloads();
}

}  // namespace

}  // namespace tonari::far
