#include "cli/info.hpp"

#include <fmt/format.h>

// The build of the MPI front makes this header.
#if __has_include("unsupported.hpp")
#define TONARI_HAS_MPI
#include "unsupported.hpp"
#endif

namespace tonari::cli {

nlohmann::ordered_json mpi_as_json() {
#ifdef TONARI_HAS_MPI
  return {
      {"abi", "1.0"}, {"version", "5.0"}, {"functions", mpi::functions}, {"unsupported", mpi::unsupported_functions}};
#else
  return {{"abi", nullptr}};
#endif
}

void print_mpi() {
#ifdef TONARI_HAS_MPI
  fmt::print(
      "libmpi_abi.so.1, the standard ABI of MPI 5.0: {} functions, of which these {} are not supported yet. A call "
      "raises MPI_ERR_UNSUPPORTED_OPERATION, which by default ends the job and names the function.\n",
      mpi::functions, mpi::unsupported_functions.size());
  for (const std::string_view name : mpi::unsupported_functions) fmt::print("  {}\n", name);
#else
  fmt::print("tonari was built without its MPI; build it with -DTONARI_FRONTS=ON\n");
#endif
}

}  // namespace tonari::cli
