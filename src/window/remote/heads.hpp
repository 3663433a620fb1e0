#pragma once

#include "fabric/head.hpp"

#include <cstdint>

namespace tonari::window {

/// Returns a head of the window protocol from rank `source` that contains `body`. `window`: its number, if both sides
/// know it.
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

/// Returns a head whose kind says everything.
inline fabric::Head plain_head(fabric::Kind kind, int source, std::uint32_t window) noexcept {
  fabric::Head head{};
  head.kind = kind;
  head.source = static_cast<std::uint32_t>(source);
  head.context = window;
  return head;
}

}  // namespace tonari::window
