#pragma once

#include "window/remote/service.hpp"

#include <tonari/window.hpp>

#include <concepts>
#include <cstddef>

namespace tonari::window {

// The two directions of a copy, from the point of view of the rank that asks for it. Code that is the same for both is
// a template over the direction, so that a push cannot write to local memory.

/// From another rank's part to local memory.
struct Pull {
  using Local = std::byte;
  static constexpr Service service = Service::pull;
  static constexpr Rights needed = Rights::read;
};
/// From local memory to another rank's part.
struct Push {
  using Local = const std::byte;
  static constexpr Service service = Service::push;
  static constexpr Rights needed = Rights::write;
};
template <class D>
concept Direction = std::same_as<D, Pull> || std::same_as<D, Push>;
template <Direction D>
inline constexpr bool is_pull = std::same_as<D, Pull>;

}  // namespace tonari::window
