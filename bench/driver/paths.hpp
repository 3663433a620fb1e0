#pragma once

#include <filesystem>
#include <string_view>

// Where the driver finds the programs that it starts. All functions may throw std::filesystem::filesystem_error.
namespace tonari::bench::driver {

/// Returns the folder of this program: PREFIX/libexec/tonari, in the build tree and installed.
std::filesystem::path program_folder();
/// Returns the command `tonari`.
std::filesystem::path tonari_command();
/// Returns the worker, which measures tonari, and what runs without a runtime.
std::filesystem::path worker();
/// Returns the program that measures the benchmark for a rival.
std::filesystem::path rival(std::string_view name, std::string_view benchmark);

bool is_program(const std::filesystem::path& path);
/// Returns whether PATH has such a program.
bool in_path(std::string_view name);

}  // namespace tonari::bench::driver
