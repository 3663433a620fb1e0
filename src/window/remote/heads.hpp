#pragma once

#include "fabric/head.hpp"

#include <cstdint>

namespace tonari::window {

/// A head of this layer from rank `source`, with `body` in it. `window`: its number, where it is known to both.
template <class Body>
fabric::Head head_of(fabric::Kind kind, int source, const Body& body, std::uint32_t window = 0) noexcept {
  fabric::Head head;
  head.kind = kind;
  head.inline_bytes = sizeof body;
  head.source = static_cast<std::uint32_t>(source);
  head.context = window;
  head.set(body);
  return head;
}

/// One that says all by its kind.
inline fabric::Head plain_head(fabric::Kind kind, int source, std::uint32_t window) noexcept {
  fabric::Head head{};
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(source);
  head.context = window;
  return head;
}

}  // namespace tonari::window
