#pragma once

#include "fabric/ucx/library.hpp"

#include <span>
#include <string_view>

namespace tonari::fabric::ucx {

/// Throws SetupError when there is an environment variable PREFIX_UCX_NAME that would do nothing: UCX has no such
/// setting, or it is one of a transport's, which UCX reads as UCX_NAME alone. `ours`: names that we see to ourselves.
void check_names(const ucp_config_t* config, std::string_view prefix, std::span<const std::string_view> ours);

}  // namespace tonari::fabric::ucx
