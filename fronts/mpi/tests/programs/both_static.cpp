#include <mpi.h>
#include <tonari/job.hpp>

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <optional>

// A program that has a copy of tonari's runtime, from libtonari.a, and loads MPI, which has another one. Usage:
// both_static LIBRARY FIRST; FIRST is mpi or job.

int main(int, char** argv) try {
  void* const library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", ::dlerror());
    return 2;
  }
  const auto begin = reinterpret_cast<decltype(&MPI_Init)>(::dlsym(library, "MPI_Init"));
  const auto end = reinterpret_cast<decltype(&MPI_Finalize)>(::dlsym(library, "MPI_Finalize"));
  const bool mpi_first = std::strcmp(argv[2], "mpi") == 0;
  if (mpi_first) begin(nullptr, nullptr);
  std::optional<tonari::Job> job(std::in_place);
  if (!mpi_first) begin(nullptr, nullptr);
  job.reset();
  end();
  std::printf("done\n");
} catch (const tonari::SetupError& error) {
  std::printf("refused: %s\n", error.what());
  return 1;
}
