#include "functions.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

// Info objects, and the hints of communicators.
namespace tonari::mpi {

namespace {

constinit std::mutex lock;  // the hints of all info objects and communicators

std::string checked_key(const char* key) {
  const std::size_t length = ::strnlen(key, MPI_MAX_INFO_KEY);
  if (length == 0) throw Failure(MPI_ERR_INFO_KEY, "key is empty");
  if (length >= MPI_MAX_INFO_KEY) {
    throw Failure(MPI_ERR_INFO_KEY, fmt::format("key has more than {} characters", MPI_MAX_INFO_KEY - 1));
  }
  return {key, length};
}

auto find_key(Hints& hints, std::string_view key) noexcept {
  return std::ranges::find(hints, key, &Hints::value_type::first);
}

void refuse_change(const Info& info) {
  if (&info == predefined.infos[number_of(MPI_INFO_ENV) & 3]) {
    throw Failure(MPI_ERR_INFO,
                  "info is MPI_INFO_ENV, which cannot be changed or freed: make a copy with MPI_Info_dup");
  }
}

MPI_Info make(Hints hints) {
  auto* const info = new Info;
  info->hints = std::move(hints);
  return info;
}

}  // namespace

void refresh_environment() {
  Hints hints = environment_hints(started_arguments());
  const std::lock_guard guard(lock);
  predefined.infos[number_of(MPI_INFO_ENV) & 3]->hints = std::move(hints);
}

void info_create(MPI_Info* info) { *info = new Info; }

void info_create_env(int argc, char** argv, MPI_Info* info) {
  std::vector<std::string> arguments;
  if (argv != nullptr) arguments.assign(argv, argv + std::max(argc, 0));
  *info = make(environment_hints(arguments.empty() ? started_arguments() : arguments));
}

void info_dup(Info& info, MPI_Info* newinfo) {
  const std::lock_guard guard(lock);
  *newinfo = make(info.hints);
}

void info_free(MPI_Info* info) {
  Info* const object = find(*info);
  if (object == nullptr) fail_handle(MPI_ERR_INFO, "info", "info object", *info);
  refuse_change(*object);
  *info = MPI_INFO_NULL;
  Ref<Info>::adopt(object);
}

void info_set(Info& info, const char* key, const char* value) {
  refuse_change(info);
  const std::string name = checked_key(key);
  const std::size_t length = ::strnlen(value, MPI_MAX_INFO_VAL);
  if (length >= MPI_MAX_INFO_VAL) {
    throw Failure(MPI_ERR_INFO_VALUE,
                  fmt::format("value of {} has more than {} characters", name, MPI_MAX_INFO_VAL - 1));
  }
  const std::lock_guard guard(lock);
  set_hint(info.hints, name, {value, length});
}

void info_delete(Info& info, const char* key) {
  refuse_change(info);
  const std::string name = checked_key(key);
  const std::lock_guard guard(lock);
  const auto found = find_key(info.hints, name);
  if (found == info.hints.end())
    throw Failure(MPI_ERR_INFO_NOKEY, fmt::format("key is {}: info has no such key", name));
  info.hints.erase(found);
}

void info_get_nkeys(Info& info, int* nkeys) {
  const std::lock_guard guard(lock);
  *nkeys = static_cast<int>(info.hints.size());
}

void info_get_nthkey(Info& info, int n, char* key) {
  const std::lock_guard guard(lock);
  if (n < 0 || static_cast<std::size_t>(n) >= info.hints.size()) {
    throw Failure(MPI_ERR_ARG, fmt::format("n is {}: info has {} keys, counted from 0", n, info.hints.size()));
  }
  int length = 0;
  give_text(info.hints[static_cast<std::size_t>(n)].first, key, MPI_MAX_INFO_KEY, &length);
}

void info_get_valuelen(Info& info, const char* key, int* valuelen, int* flag) {
  const std::string name = checked_key(key);
  const std::lock_guard guard(lock);
  const auto found = find_key(info.hints, name);
  *flag = found != info.hints.end() ? 1 : 0;
  if (*flag != 0) *valuelen = static_cast<int>(found->second.size());
}

// Deprecated: `valuelen` does not count the zero at the end.
void info_get(Info& info, const char* key, int valuelen, char* value, int* flag) {
  if (valuelen < 0) throw Failure(MPI_ERR_ARG, fmt::format("valuelen is {}: it must not be negative", valuelen));
  const std::string name = checked_key(key);
  const std::lock_guard guard(lock);
  const auto found = find_key(info.hints, name);
  *flag = found != info.hints.end() ? 1 : 0;
  int length = 0;
  if (*flag != 0) give_text(found->second, value, static_cast<std::size_t>(valuelen) + 1, &length);
}

// `buflen` counts the zero at the end. With 0 only the length is returned.
void info_get_string(Info& info, const char* key, int* buflen, char* value, int* flag) {
  if (*buflen < 0) throw Failure(MPI_ERR_ARG, fmt::format("*buflen is {}: it must not be negative", *buflen));
  const std::string name = checked_key(key);
  const std::lock_guard guard(lock);
  const auto found = find_key(info.hints, name);
  *flag = found != info.hints.end() ? 1 : 0;
  if (*flag == 0) return;
  int length = 0;
  if (*buflen > 0) give_text(found->second, value, static_cast<std::size_t>(*buflen), &length);
  *buflen = static_cast<int>(found->second.size()) + 1;
}

void comm_set_info(Comm& comm, Info* info) {
  if (info == nullptr) return;
  const std::lock_guard guard(lock);
  for (const auto& [key, value] : info->hints) set_hint(comm.hints, key, value);
}

Hints hints_of(const Comm& comm) {
  const std::lock_guard guard(lock);
  return comm.hints;
}

void comm_get_info(Comm& comm, MPI_Info* info_used) {
  const std::lock_guard guard(lock);
  Hints hints = comm.hints;
  set_hint(hints, "mpi_memory_alloc_kinds", memory_kinds);
  *info_used = make(std::move(hints));
}

}  // namespace tonari::mpi
