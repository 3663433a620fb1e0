#pragma once

#include "pager/page.hpp"

#include <cstddef>

namespace tonari::preload {

using pager::Address;
using pager::page_bytes;

inline Address address_of(const void* pointer) noexcept { return reinterpret_cast<Address>(pointer); }
inline void* pointer_to(Address address) noexcept { return reinterpret_cast<void*>(address); }

constexpr std::size_t to_whole_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace tonari::preload
