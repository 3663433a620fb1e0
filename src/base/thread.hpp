#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace tonari {

/// Throws SetupError for a thread that could not be started. Names the system call if a sandbox refused it.
[[noreturn]] void throw_thread_error(int error, std::string_view what);

/// Starts a thread. Throws SetupError "starting WHAT: ..." where std::thread throws std::system_error.
template <class Function>
std::thread start_thread(std::string_view what, Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    throw_thread_error(error.code().value(), what);
  }
}

}  // namespace tonari
