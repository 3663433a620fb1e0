#include "preload/exported.hpp"
#include "preload/next.hpp"
#include "preload/unreached.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstddef>

// Wraps execl and its relatives: libc calls its own execve for them, which does not touch arguments in absent memory as
// our wrapper does (repeating.cpp).
using namespace tonari::preload;

namespace {

std::size_t length_of(const char* first, std::va_list others) noexcept {
  std::va_list rest;
  va_copy(rest, others);
  std::size_t length = 0;
  for (const char* each = first; each != nullptr; each = va_arg(rest, const char*)) ++length;
  va_end(rest);
  return length;
}

// Calls call(arguments), which returns only if it fails. The list is on the stack, because the process may share its
// memory with the parent, and other memory would never be given back.
template <class Call>
int with_list(const char* first, std::va_list& others, Call call) noexcept {
  const std::size_t length = length_of(first, others);
  auto* const list = static_cast<char**>(__builtin_alloca((length + 1) * sizeof(char*)));
  list[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i <= length; ++i) list[i] = va_arg(others, char*);
  return call(list);
}

}  // namespace

TONARI_EXPORTED int execl(const char* path, const char* first, ...) noexcept {
  std::va_list others;
  va_start(others, first);
  const int answer = with_list(first, others, [&](char** list) { return ::execv(path, list); });
  va_end(others);
  return answer;
}

TONARI_EXPORTED int execlp(const char* name, const char* first, ...) noexcept {
  std::va_list others;
  va_start(others, first);
  const int answer = with_list(first, others, [&](char** list) { return ::execvp(name, list); });
  va_end(others);
  return answer;
}

TONARI_EXPORTED int execle(const char* path, const char* first, ...) noexcept {
  std::va_list others;
  va_start(others, first);
  const int answer = with_list(first, others, [&](char** list) {
    char* const* const variables = va_arg(others, char* const*);  // after the end of the arguments
    return ::execve(path, list, variables);
  });
  va_end(others);
  return answer;
}
