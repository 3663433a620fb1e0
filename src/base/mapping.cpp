#include "base/mapping.hpp"

#include "base/error.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace tonari {

namespace {

[[noreturn]] void refuse(const char* call, std::size_t bytes, const char* what, const char* remedy) {
  const int error = errno;
  throw_system_error(error, std::string{call} + " of " + std::to_string(bytes) + " bytes for " + what,
                     error == ENOMEM ? "free memory, or raise the limit: see ulimit -v and vm.max_map_count" : remedy);
}

}  // namespace

Mapping::Mapping(int file, std::size_t bytes, const char* what, std::uint64_t offset)
    : Mapping(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset)), bytes, what,
              "the file must be open for reading and writing") {}

Mapping Mapping::of_zeros(std::size_t bytes, const char* what) {
  return {::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes, what,
          "free memory"};
}

Mapping Mapping::of_sparse_zeros(std::size_t bytes, const char* what) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return {::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0), bytes, what, "free memory"};
}

Mapping::Mapping(void* start, std::size_t bytes, const char* what, const char* remedy) {
  if (start == MAP_FAILED) refuse("mmap", bytes, what, remedy);
  bytes_ = {static_cast<std::byte*>(start), bytes};

  if (::madvise(start, bytes, MADV_DONTFORK) != 0) {
    const int error = errno;
    ::munmap(start, bytes);
    errno = error;
    refuse("madvise(MADV_DONTFORK)", bytes, what, "the memory must be mappable: a device file may not be");
  }
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace tonari
