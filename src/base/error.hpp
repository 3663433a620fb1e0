#pragma once

#include <string_view>

namespace tonari {

/// Throws SetupError with the text "WHAT: text of errno; REMEDY". Reads errno, so call it directly after the call that
/// failed. An empty remedy is left out.
[[noreturn]] void throw_system_error(std::string_view what, std::string_view remedy = {});

/// The same for an error number that was returned, not stored in errno.
[[noreturn]] void throw_system_error(int error, std::string_view what, std::string_view remedy = {});

}  // namespace tonari
