#include "job/joining.hpp"
#include "job/neighbour.hpp"
#include "job/starter.hpp"

#include <unistd.h>

#include <cstdlib>

namespace tonari::job {

Membership JoiningAlone::join(const Settings& settings) {
  auto arena = std::make_shared<Arena>(Arena::create(1, settings));
  arena->block(0).pid.store(::getpid(), std::memory_order_relaxed);  // published by the phase
  arena->advance(0, Phase::joined);
  Membership member{.rank = 0, .size = 1, .arena = std::move(arena)};
  member.direct_copies = settings.direct_copies && can_copy_here();
  return member;
}

Addresses JoiningAlone::exchange(std::span<const std::byte> address) { return {{address.begin(), address.end()}}; }

std::unique_ptr<Joining> detect_joining() {
  switch (find_starter([](const char* name) -> const char* { return std::getenv(name); })) {
    case Starter::run: return JoiningRun::from_environment();
    case Starter::pmix: return std::make_unique<JoiningPmix>();
    case Starter::nobody: break;
  }
  return std::make_unique<JoiningAlone>();
}

}  // namespace tonari::job
