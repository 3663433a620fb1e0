#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// The ABI, and the properties of a Fortran compiler, which a library of Fortran bindings sets. tonari has no Fortran
// bindings of its own, so nothing is known before.
namespace tonari::mpi {

namespace {

struct Booleans {
  int size;
  std::string true_bytes;
  std::string false_bytes;
};
constinit std::mutex lock;  // of the two below, which programs may use until the process ends
std::optional<Hints>& fortran_info() noexcept {
  static auto* const hints = new std::optional<Hints>;
  return *hints;
}
std::optional<Booleans>& fortran_booleans() noexcept {
  static auto* const booleans = new std::optional<Booleans>;
  return *booleans;
}

// Returns the Fortran type that a key such as mpi_integer_size or mpi_real16_supported is about; null if there is none.
const Datatype* type_of(std::string key, std::string_view ending) {
  if (!key.starts_with("mpi_") || !key.ends_with(ending)) return nullptr;
  key.resize(key.size() - ending.size());
  for (char& each : key) each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
  const auto found = std::ranges::find_if(
      predefined.types, [&key](const Datatype* type) { return type != nullptr && type->name == key; });
  return found != predefined.types.end() ? *found : nullptr;
}

// The sizes of tonari's Fortran types cannot change: they are the sizes that compilers use without options.
void check_size(const std::string& key, const std::string& value) {
  const Datatype* const type = type_of(key, "_size");
  if (type == nullptr || value == std::to_string(type->size)) return;
  throw Failure(MPI_ERR_ABI, fmt::format("{} is {}, but {} has {} bytes in this MPI library: build the program without "
                                         "options that change the sizes of Fortran's types",
                                         key, value, type->name, type->size));
}

void check_logical_size(int size) {
  if (size < 1 || size > 16 || !std::has_single_bit(static_cast<unsigned>(size))) {
    throw Failure(MPI_ERR_ARG, fmt::format("logical_size is {}: it must be 1, 2, 4, 8 or 16", size));
  }
}

void check_addresses(const void* one, const void* other) {
  if (one == nullptr || other == nullptr) {
    throw Failure(MPI_ERR_ARG, "logical_true or logical_false is a null pointer");
  }
}

}  // namespace

void abi_get_version(int* abi_major, int* abi_minor) {
  *abi_major = MPI_ABI_VERSION;
  *abi_minor = MPI_ABI_SUBVERSION;
}

void abi_get_info(MPI_Info* info) {
  auto* const made = new Info;
  made->hints = {{"mpi_aint_size", std::to_string(sizeof(MPI_Aint))},
                 {"mpi_count_size", std::to_string(sizeof(MPI_Count))},
                 {"mpi_offset_size", std::to_string(sizeof(MPI_Offset))}};
  *info = made;
}

void abi_set_fortran_info(Info* info) {
  if (info == nullptr) throw Failure(MPI_ERR_INFO, "info is MPI_INFO_NULL");
  const std::lock_guard guard(lock);
  if (fortran_info()) throw Failure(MPI_ERR_ABI, "the Fortran ABI was set already: it can be set once");
  Hints hints = info->hints;
  for (auto& [key, value] : hints) {
    check_size(key, value);
    if (const Datatype* const type = type_of(key, "_supported"); type != nullptr)
      value = type->is_absent ? "false" : "true";
  }
  fortran_info() = std::move(hints);
}

void abi_get_fortran_info(MPI_Info* info) {
  const std::lock_guard guard(lock);
  if (!fortran_info()) {
    *info = MPI_INFO_NULL;
    return;
  }
  auto* const made = new Info;
  made->hints = *fortran_info();
  *info = made;
}

void abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false) {
  check_logical_size(logical_size);
  check_addresses(logical_true, logical_false);
  const auto bytes = static_cast<std::size_t>(logical_size);
  const std::lock_guard guard(lock);
  if (fortran_booleans()) throw Failure(MPI_ERR_ABI, "the Fortran booleans were set already: they can be set once");
  fortran_booleans() = Booleans{
      logical_size, {static_cast<const char*>(logical_true), bytes}, {static_cast<const char*>(logical_false), bytes}};
}

void abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set) {
  check_logical_size(logical_size);
  check_addresses(logical_true, logical_false);
  const std::lock_guard guard(lock);
  *is_set = fortran_booleans() && fortran_booleans()->size == logical_size ? 1 : 0;
  if (*is_set == 0) return;
  std::memcpy(logical_true, fortran_booleans()->true_bytes.data(), static_cast<std::size_t>(logical_size));
  std::memcpy(logical_false, fortran_booleans()->false_bytes.data(), static_cast<std::size_t>(logical_size));
}

}  // namespace tonari::mpi
