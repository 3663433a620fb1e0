#include "cli/launch_binding.hpp"

#include "base/error.hpp"
#include "cli/launch.hpp"
#include "cli/topology.hpp"

#include <tonari/status.hpp>

#include <hwloc/glibc-sched.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace tonari::cli {

namespace {

constexpr std::string_view sandbox_remedy = "use -n and --bind none, or let the sandbox's filter allow the call";

/// The processors that this process may use. Throws SetupError.
cpu_set_t own_processors() {
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return mine;
  if (errno == EINVAL) throw SetupError("this machine has more than 1024 processors: use -n and --bind none");
  throw_system_error("sched_getaffinity", sandbox_remedy);
}

}  // namespace

void check_binding_is_allowed() {
  const cpu_set_t mine = own_processors();
  if (::sched_setaffinity(0, sizeof mine, &mine) != 0) throw_system_error("sched_setaffinity", sandbox_remedy);
}

std::vector<cpu_set_t> usable_core_sets() {
  const cpu_set_t mine = own_processors();
  const Topology topology = load_topology(true);
  const int cores = ::hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  std::vector<cpu_set_t> sets;
  for (int i = 0; i < cores; ++i) {
    const auto* const core = ::hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    cpu_set_t set;
    ::hwloc_cpuset_to_glibc_sched_affinity(topology.get(), core->cpuset, &set, sizeof set);
    CPU_AND(&set, &set, &mine);
    if (CPU_COUNT(&set) > 0) sets.push_back(set);
  }
  if (sets.empty()) sets.push_back(mine);
  return sets;
}

int usable_cores() noexcept {
  try {
    return static_cast<int>(usable_core_sets().size());
  } catch (const SetupError&) {
    return 1;
  }
}

}  // namespace tonari::cli
