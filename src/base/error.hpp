#pragma once

#include <string_view>

namespace tonari {

/// Throws SetupError "WHAT: text of errno; REMEDY". Reads errno: call it straight after what failed.
/// An empty remedy is left out.
[[noreturn]] void throw_system_error(std::string_view what, std::string_view remedy = {});

/// The same for an error number that did not come through errno.
[[noreturn]] void throw_system_error(int error, std::string_view what, std::string_view remedy = {});

}  // namespace tonari
