#include "far/channel.hpp"
#include "far/preload/begin.hpp"
#include "far/preload/real.hpp"
#include "far/preload/statics.hpp"
#include "preload/next.hpp"

#include <cstdlib>

// Runs before main(), as the environment says.
namespace tonari::far {

namespace {

// MIN_BYTES@NAME
void read_door(const char* text) noexcept {
  char* name = nullptr;
  const unsigned long long bytes_min = std::strtoull(text, &name, 10);
  if (bytes_min != 0 && *name == '@') may_begin(name + 1, bytes_min);
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
