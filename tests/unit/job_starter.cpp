#include "job/starter.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tonari::job {
namespace {

using Variables = std::map<std::string, std::string>;

Starter starter_in(const Variables& variables) {
  return find_starter([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal_in(const Variables& variables) {
  try {
    starter_in(variables);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

const Variables of_run{{"TONARI_JOIN", "tonari-run-7"}};
const Variables of_pmix{{"PMIX_NAMESPACE", "job"}, {"PMIX_RANK", "0"}};
const Variables of_hydra{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"PMI_FD", "7"}};
const Variables of_step{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "2"}};

Variables both(Variables left, const Variables& right) {
  left.insert(right.begin(), right.end());
  return left;
}

TEST(Starter, IsNobodyWithoutVariablesOfALauncher) { EXPECT_EQ(starter_in({}), Starter::nobody); }

TEST(Starter, IsRunInsideAnyLauncher) {
  for (const Variables& outside : {of_pmix, of_hydra, of_step}) {
    EXPECT_EQ(starter_in(both(of_run, outside)), Starter::run);
  }
}

TEST(Starter, IsPmixWhateverElseALauncherSets) {
  EXPECT_EQ(starter_in(of_pmix), Starter::pmix);
  EXPECT_EQ(starter_in(both(of_pmix, of_hydra)), Starter::pmix);
  EXPECT_EQ(starter_in(both(of_pmix, of_step)), Starter::pmix);
}

TEST(Starter, TreatsAnEmptyVariableAsUnset) {
  EXPECT_EQ(starter_in({{"TONARI_JOIN", ""}, {"PMIX_NAMESPACE", ""}, {"PMIX_RANK", "0"}}), Starter::nobody);
}

TEST(Starter, RefusesSeveralProcessesOfALauncherWithoutPmix) {
  EXPECT_NE(refusal_in(of_hydra).find("`mpirun` of Open MPI, `srun --mpi=pmix` or `tonari run`"), std::string::npos);
  EXPECT_EQ(starter_in({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"PMI_FD", "7"}}), Starter::nobody);
  EXPECT_EQ(starter_in({{"PMI_SIZE", "2"}}), Starter::nobody);
}

TEST(Starter, RefusesSeveralTasksOfAStepWithoutPmix) {
  EXPECT_NE(refusal_in(of_step).find("`srun --mpi=pmix`"), std::string::npos);
  EXPECT_EQ(starter_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), Starter::nobody);
}

TEST(Starter, LeavesTheShellOfAnAllocationAlone) {
  EXPECT_EQ(starter_in({{"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}}), Starter::nobody);  // salloc
  EXPECT_EQ(starter_in({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}}),
            Starter::nobody);  // sbatch
}

}  // namespace
}  // namespace tonari::job
