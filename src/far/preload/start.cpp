#include "far/channel.hpp"
#include "far/preload/begin.hpp"
#include "far/preload/choice.hpp"
#include "far/preload/real.hpp"
#include "far/preload/statics.hpp"
#include "preload/next.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

// Runs before main(), as the environment says.
namespace tonari::far {

namespace {

// MIN_BYTES,FAULTS@NAME
void read_door(const char* text) noexcept {
  char* rest = nullptr;
  const unsigned long long bytes_min = std::strtoull(text, &rest, 10);
  const char* const name = std::strchr(rest, '@');
  if (bytes_min == 0 || *rest != ',' || name == nullptr) return;
  const auto* const found = std::ranges::find(names_of_faults_by, std::string_view(rest + 1, name));
  if (found == names_of_faults_by.end()) return;
  may_begin(name + 1, bytes_min, static_cast<FaultsBy>(found - names_of_faults_by.begin()));
}

// The socket is for this process alone. Programs that it starts or executes inherit the rest: they ask at the door.
[[gnu::constructor]] void start_program() noexcept {
  (void)real();
  find_all_next();
  look_at_program();
  const char* const door = std::getenv(door_variable);
  if (door != nullptr) read_door(door);
  const char* const number = std::getenv(socket_variable);
  if (number != nullptr && begin(std::atoi(number))) ::unsetenv(socket_variable);
  use_static_memory();
}

}  // namespace

}  // namespace tonari::far
