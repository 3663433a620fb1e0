#include "far/channel.hpp"
#include "far/preload/begin.hpp"
#include "far/preload/real.hpp"
#include "far/preload/statics.hpp"
#include "preload/next.hpp"

#include <cstdlib>
#include <string_view>

// Runs before main(), as the environment says.
namespace tonari::far {

namespace {

// MIN_BYTES@NAME, or MIN_BYTES,self@NAME
void read_door(const char* text) noexcept {
  char* rest = nullptr;
  const unsigned long long bytes_min = std::strtoull(text, &rest, 10);
  std::string_view name = rest;
  const bool self = name.starts_with(door_self);
  if (self) name.remove_prefix(door_self.size());
  if (bytes_min == 0 || !name.starts_with('@')) return;
  may_begin(name.data() + 1, bytes_min, self ? FaultsBy::threads : FaultsBy::keeper);
}

// The socket is for this process alone. Programs that it starts or executes inherit the rest: they ask at the door.
[[gnu::constructor]] void start_program() noexcept {
  (void)real();
  find_all_next();
  const char* const door = std::getenv(door_variable);
  if (door != nullptr) read_door(door);
  const char* const number = std::getenv(socket_variable);
  if (number != nullptr && begin(std::atoi(number))) ::unsetenv(socket_variable);
  use_static_memory();
}

}  // namespace

}  // namespace tonari::far
