#include "mpi/foreign_launcher.hpp"

#include "mpi/failure.hpp"

#include <cstdlib>
#include <string>

namespace tonari::mpi {

namespace {

struct Launcher {
  const char* size;  // the variable that has the number of ranks
  const char* name;
};
constexpr Launcher launchers[] = {{"PMI_SIZE", "MPICH's or Intel MPI's mpiexec"},
                                  {"OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun"},
                                  {"MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun"},
                                  {"SLURM_NTASKS", "srun"}};

// tonari joins by the first two; SLURM_NTASKS alone is also set in a batch script that runs one process.
bool joins_otherwise() noexcept {
  return std::getenv("TONARI_JOIN") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMIX_NAMESPACE") != nullptr;
}

}  // namespace

void refuse_foreign_launcher() {
  if (joins_otherwise()) return;
  for (const Launcher& launcher : launchers) {
    const char* const size = std::getenv(launcher.size);
    if (size == nullptr || std::atoi(size) < 2) continue;
    const bool is_slurm = std::string_view(launcher.size) == "SLURM_NTASKS";
    if (is_slurm && std::getenv("SLURM_PROCID") == nullptr) continue;
    throw Failure(MPI_ERR_OTHER, std::string("this program uses tonari's MPI, but ") + launcher.name +
                                     " started it as one of " + size + " processes (" + launcher.size +
                                     "), which tonari cannot join. Start it with tonari's mpiexec (`tonari env` prints "
                                     "where it is), or with a launcher that has PMIx: mpirun of Open MPI 5, "
                                     "srun --mpi=pmix");
  }
}

}  // namespace tonari::mpi
