#include "mpi/requests/awaited.hpp"

#include "mpi/checks.hpp"
#include "mpi/environment/object_names.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>

namespace tonari::mpi {

namespace {

bool is_outstanding(const Request& request) noexcept {
  return !request.is_complete && (request.conduct != nullptr || request.is_running());
}

std::string text_of(const Request* one) {
  if (one == nullptr || one->kind != Request::Kind::collective || !one->comm) return {};
  return fmt::format(" of {} on {}", function_names[static_cast<std::size_t>(one->function)], description(*one->comm));
}

std::string text_of(const Handles& several) {
  std::size_t all = 0;
  std::size_t left = 0;
  const Request* first = nullptr;
  for (std::size_t i = 0; i < several.size(); ++i) {
    const Request* const request = several.active(i);
    if (request == nullptr) continue;
    ++all;
    if (!is_outstanding(*request)) continue;
    ++left;
    if (first == nullptr) first = request;
  }
  return fmt::format(" ({} of {} left)", left, all) + text_of(first);
}

}  // namespace

std::string_view describe_call() noexcept {
  static thread_local std::string text;
  const char* const name = function_names[static_cast<std::size_t>(current_function)];
  const Awaiting* const now = Awaiting::current;
  if (now == nullptr) return name;
  try {
    text = name + (now->several_ != nullptr ? text_of(*now->several_) : text_of(now->one_));
    return text;
  } catch (const std::exception&) {
    return name;  // there is no memory
  }
}

}  // namespace tonari::mpi
