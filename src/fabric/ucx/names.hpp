#pragma once

#include "fabric/ucx/library.hpp"

#include <span>
#include <string_view>

namespace tonari::fabric::ucx {

/// Throws SetupError if an environment variable PREFIX_UCX_NAME would have no effect: UCX has no such setting, or it
/// belongs to a transport, for which UCX reads only UCX_NAME. `ours`: names that tonari handles itself.
void check_names(const ucp_config_t* config, std::string_view prefix, std::span<const std::string_view> ours);

}  // namespace tonari::fabric::ucx
