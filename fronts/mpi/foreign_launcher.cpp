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
                                  // The size of the step. A batch script has no step, but SLURM_PROCID=0 and the
                                  // SLURM_NTASKS of the whole job.
                                  {"SLURM_STEP_NUM_TASKS", "srun"}};

// tonari joins by these.
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
    throw Failure(MPI_ERR_OTHER, std::string("this program uses tonari's MPI, but ") + launcher.name +
                                     " started it as one of " + size + " processes (" + launcher.size +
                                     "), which tonari cannot join. Start it with tonari's mpiexec (`tonari env` prints "
                                     "where it is), or with a launcher that has PMIx: mpirun of Open MPI 4.1 "
                                     "or 5, srun --mpi=pmix");
  }
}

}  // namespace tonari::mpi
