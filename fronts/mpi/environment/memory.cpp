#include "functions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>

// Memory and addresses.
namespace tonari::mpi {

namespace {

// A cache line, so that vector instructions and other ranks' copies do not share lines with other data.
constexpr std::size_t alignment_least = 64;

std::size_t alignment_of(const Info* info) {
  if (info == nullptr) return alignment_least;
  const auto found = std::ranges::find(info->hints, "mpi_minimum_memory_alignment", &Hints::value_type::first);
  if (found == info->hints.end()) return alignment_least;
  const std::string& text = found->second;
  std::size_t wanted = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  if (error != std::errc{} || end != text.data() + text.size() || !std::has_single_bit(wanted)) {
    throw Failure(MPI_ERR_INFO_VALUE,
                  fmt::format("mpi_minimum_memory_alignment is {}: it must be a power of two", text));
  }
  return std::max(wanted, alignment_least);
}

}  // namespace

void alloc_mem(MPI_Aint size, Info* info, void* baseptr) {
  if (size < 0) throw Failure(MPI_ERR_ARG, fmt::format("size is {}: it must not be negative", size));
  if (baseptr == nullptr) throw Failure(MPI_ERR_ARG, "baseptr is a null pointer");
  void* memory = nullptr;
  const auto bytes = std::max<std::size_t>(static_cast<std::size_t>(size), 1);
  if (::posix_memalign(&memory, alignment_of(info), bytes) != 0) {
    throw Failure(MPI_ERR_NO_MEM, fmt::format("size is {}: the system refused that much memory", size));
  }
  *static_cast<void**>(baseptr) = memory;
}

void free_mem(void* base) { std::free(base); }

void get_address(const void* location, MPI_Aint* address) { *address = reinterpret_cast<MPI_Aint>(location); }

// Addresses wrap around, as on the processor.
MPI_Aint aint_add(MPI_Aint base, MPI_Aint disp) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(disp));
}
MPI_Aint aint_diff(MPI_Aint addr1, MPI_Aint addr2) {
  return static_cast<MPI_Aint>(static_cast<std::uintptr_t>(addr1) - static_cast<std::uintptr_t>(addr2));
}

}  // namespace tonari::mpi
