#include "functions.hpp"
#include "message/creation.hpp"
#include "mpi/communicators/new_comm.hpp"
#include "mpi/environment/hardware.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

// MPI_Comm_split_type: the ranks that share a host, or a part of its hardware.
namespace tonari::mpi {

namespace {

constexpr const char* resource_key = "mpi_hw_resource_type";

int host_of_this_rank() {
  Job& job = Process::current()->job();
  return job.host(job.rank());
}

std::optional<std::string> resource_in(const Info* info) {
  if (info == nullptr) return std::nullopt;
  const auto found = std::ranges::find(info->hints, resource_key, &Hints::value_type::first);
  return found != info->hints.end() ? std::optional(found->second) : std::nullopt;
}

// The place of this rank's processors among the hardware of this kind; -1 if they are on several, or there is none.
int place_on(const std::string& kind) {
  const auto kinds = hardware_kinds();
  const auto found = std::ranges::find(kinds, kind, &HardwareKind::name);
  return found != kinds.end() ? found->place : -1;
}

// The ranks of one host that run on the same piece of hardware.
Ref<Comm> split_by_place(Comm& comm, int place, int key) {
  const Ref<Comm> host = new_comm(comm, message::split(*comm.context, host_of_this_rank(), key));
  return new_comm(comm, message::split(*host->context, place, key));
}

bool agree(Comm& comm, bool mine) {
  int all = mine ? 1 : 0;
  mpi::check(message::Communicators::borrow(*comm.context).all_reduce(all, [](int a, int b) { return a & b; }));
  return all != 0;
}

// The largest kind of hardware that divides the communicator. `kind` becomes its name.
Ref<Comm> split_unguided(Comm& comm, int key, std::string& kind) {
  Ref<Comm> host = new_comm(comm, message::split(*comm.context, host_of_this_rank(), key));
  kind = "mpi_shared_memory";
  if (!agree(comm, host->size() == comm.size())) return host;
  for (const HardwareKind& each : hardware_kinds()) {
    if (!agree(comm, each.place >= 0)) continue;
    Ref<Comm> part = new_comm(comm, message::split(*comm.context, each.place, key));
    kind = each.name;
    if (!agree(comm, part->size() == comm.size())) return part;
  }
  return {};
}

}  // namespace

void comm_split_type(Comm& comm, int split_type, int key, Info* info, MPI_Comm* newcomm) {
  Ref<Comm> made;
  std::string kind;
  switch (split_type) {
    case MPI_UNDEFINED: made = new_comm(comm, message::split(*comm.context, MPI_UNDEFINED, key)); break;
    case MPI_COMM_TYPE_SHARED: made = new_comm(comm, message::split(*comm.context, host_of_this_rank(), key)); break;
    case MPI_COMM_TYPE_HW_UNGUIDED: made = split_unguided(comm, key, kind); break;
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED: {
      const auto wanted = resource_in(info);
      const bool is_host = wanted && (*wanted == "mpi_shared_memory" || *wanted == "hwloc://Machine");
      made = is_host  ? new_comm(comm, message::split(*comm.context, host_of_this_rank(), key))
             : wanted ? split_by_place(comm, place_on(*wanted), key)
                      : new_comm(comm, message::split(*comm.context, MPI_UNDEFINED, key));
      break;
    }
    default:
      throw Failure(MPI_ERR_ARG,
                    fmt::format("split_type is {}: it must be one of the MPI_COMM_TYPE_ constants", split_type));
  }
  if (made && info != nullptr && !kind.empty()) set_hint(info->hints, resource_key, kind);
  *newcomm = made ? made.take() : MPI_COMM_NULL;
}

}  // namespace tonari::mpi
