#pragma once

#include "pager/checksum.hpp"

// One function for each vector width, each compiled in a file of its own for those processors.
namespace tonari::pager {

Checksum hash_plain(const std::byte* page) noexcept;
#if defined(__x86_64__)
Checksum hash_avx2(const std::byte* page) noexcept;
Checksum hash_avx512(const std::byte* page) noexcept;
#endif

}  // namespace tonari::pager
