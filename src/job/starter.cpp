#include "job/starter.hpp"

#include <tonari/status.hpp>

#include <fmt/format.h>

#include <cstdlib>

namespace tonari::job {

namespace {

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  // An empty variable counts as not set, so that NAME= in front of a command removes it.
  [[nodiscard]] bool has(const char* name) const {
    const char* const text = environment_(name);
    return text != nullptr && *text != '\0';
  }
  [[nodiscard]] int number(const char* name) const { return has(name) ? std::atoi(environment_(name)) : 0; }

 private:
  const Environment& environment_;
};

}  // namespace

Starter find_starter(const Environment& environment) {
  const Variables variables{environment};
  if (variables.has("TONARI_JOIN")) return Starter::run;
  if (variables.has("PMIX_NAMESPACE") && variables.has("PMIX_RANK")) return Starter::pmix;

  const bool by_pmi = variables.has("PMI_RANK") || variables.has("PMI_FD");
  if (const int size = variables.number("PMI_SIZE"); by_pmi && size > 1) {
    throw SetupError(
        fmt::format("a launcher without PMIx, such as MPICH's mpiexec, started {} processes (PMI_SIZE): they could not "
                    "find each other; start them with `mpirun` of Open MPI, `srun --mpi=pmix` or `tonari run`, or "
                    "unset PMI_SIZE to make each a job of its own",
                    size));
  }
  // Only the processes of a job step have SLURM_STEP_NUM_TASKS. Programs started in the shell of a batch job or of
  // salloc run alone.
  const bool by_step = variables.has("SLURM_PROCID");
  if (const int size = variables.number("SLURM_STEP_NUM_TASKS"); by_step && size > 1) {
    throw SetupError(
        fmt::format("srun started {} processes without PMIx (SLURM_STEP_NUM_TASKS): they could not find each other; "
                    "use `srun --mpi=pmix` (`srun --mpi=list` says whether this Slurm has it), `mpirun` of Open MPI or "
                    "`tonari run`, or unset SLURM_STEP_NUM_TASKS to make each a job of its own",
                    size));
  }
  return Starter::nobody;
}

}  // namespace tonari::job
