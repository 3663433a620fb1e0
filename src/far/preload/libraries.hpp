#pragma once

#include "far/preload/static_objects.hpp"

namespace tonari::far {

/// Keeps a library loaded until the process ends, whatever the program does. The loader unmaps a library in the middle
/// of dlclose(), after its destructors: its static variables could not be taken out of far memory in time, and agents
/// would then move pages of whatever is mapped there next. Returns false if the library is not loaded any more.
bool keep_loaded(const LoadedFile& file) noexcept;

}  // namespace tonari::far
