#include "functions.hpp"
#include "message/creation.hpp"
#include "mpi/communicators/new_comm.hpp"
#include "mpi/environment/error_handlers.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/environment/object_names.hpp"
#include "mpi/process.hpp"
#include "mpi/request.hpp"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <string_view>

// Making and freeing communicators.
namespace tonari::mpi {

namespace {

MPI_Comm handle_or_null(Ref<Comm> comm) noexcept { return comm ? comm.take() : MPI_COMM_NULL; }

// The tag of communicators that are made from a group and a text. Groups with a common rank that use different texts at
// once need different tags; equal ones are as unlikely as equal hashes.
int tag_of(const char* text) noexcept {
  return static_cast<int>(std::hash<std::string_view>{}(text)&std::numeric_limits<int>::max());
}

void inherit(Comm& made, const Comm& parent) noexcept {
  made.errhandler = error_handler(parent.errhandler);
  made.session_buffer = parent.session_buffer;
}

// Returns a communicator that has no parent, but a group of a session.
MPI_Comm handle_of_new(message::NewContext made, const Group& group, const Info* info, Errhandler& errhandler) {
  mpi::check(made.status);
  auto comm = Ref<Comm>::adopt(new Comm(std::move(made.value)));
  set_error_handler(*comm, errhandler);
  comm->session_buffer = group.session_buffer;
  if (info != nullptr) comm->hints = info->hints;
  return comm.take();
}

void duplicate(Comm& comm, const Hints& hints, MPI_Comm* newcomm) {
  Ref<Comm> made = new_comm(comm, message::duplicate(*comm.context));
  made->hints = hints;
  copy_attributes(comm.attributes, handle_of(&comm), made->attributes, static_cast<MPI_Comm>(made.get()));
  *newcomm = made.take();
}

void start_duplicate(Comm& comm, const Hints& hints, MPI_Comm* newcomm, MPI_Request* request) {
  auto made = Ref<Comm>::adopt(new Comm);
  inherit(*made, comm);
  made->hints = hints;
  copy_attributes(comm.attributes, handle_of(&comm), made->attributes, static_cast<MPI_Comm>(made.get()));
  *request = make_request(comm, message::start_duplicate(*comm.context, made->context), [made] { made->settle(); });
  *newcomm = made.take();
}

void check_leader(const Comm& comm, const char* argument, int leader) {
  if (leader >= 0 && leader < comm.size()) return;
  throw Failure(MPI_ERR_RANK, fmt::format("{} is {}: the ranks of {}, the local communicator, are 0 to {}", argument,
                                          leader, description(comm), comm.size() - 1));
}

void check_tag(int tag) {
  if (tag < 0) throw Failure(MPI_ERR_TAG, fmt::format("tag is {}: it must not be negative", tag));
}

}  // namespace

Ref<Comm> new_comm(const Comm& parent, message::NewContext made) {
  mpi::check(made.status);
  if (made.value == nullptr) return {};
  auto comm = Ref<Comm>::adopt(new Comm(std::move(made.value)));
  inherit(*comm, parent);
  set_error_handler(*comm, *error_handler(parent.errhandler));
  return comm;
}

void comm_dup(Comm& comm, MPI_Comm* newcomm) { duplicate(comm, hints_of(comm), newcomm); }
void comm_dup_with_info(Comm& comm, Info* info, MPI_Comm* newcomm) {
  duplicate(comm, info != nullptr ? info->hints : Hints{}, newcomm);
}
void comm_idup(Comm& comm, MPI_Comm* newcomm, MPI_Request* request) {
  start_duplicate(comm, hints_of(comm), newcomm, request);
}
void comm_idup_with_info(Comm& comm, Info* info, MPI_Comm* newcomm, MPI_Request* request) {
  start_duplicate(comm, info != nullptr ? info->hints : Hints{}, newcomm, request);
}

void comm_split(Comm& comm, int color, int key, MPI_Comm* newcomm) {
  if (color < 0 && color != MPI_UNDEFINED) {
    throw Failure(MPI_ERR_ARG,
                  fmt::format("color is {}: it must not be negative; MPI_UNDEFINED stands for none", color));
  }
  *newcomm = handle_or_null(new_comm(comm, message::split(*comm.context, color, key)));
}

void comm_create(Comm& comm, Group& group, MPI_Comm* newcomm) {
  for (const JobRank rank : group.ranks.ranks()) {
    if (comm.context->group().position(rank)) continue;
    throw Failure(MPI_ERR_GROUP, fmt::format("group has rank {} of the job, which comm does not have", rank.value()));
  }
  *newcomm = handle_or_null(new_comm(comm, message::create(*comm.context, group.ranks)));
}

void comm_create_group(Comm& comm, Group& group, int tag, MPI_Comm* newcomm) {
  check_tag(tag);
  if (comm.is_inter) throw Failure(MPI_ERR_COMM, "comm is an inter-communicator: it must have one group");
  *newcomm = MPI_COMM_NULL;
  message::Context& context = *comm.context;
  if (!group.ranks.position(Process::current()->job().rank())) return;
  *newcomm = handle_or_null(new_comm(comm, message::create_context(context.runtime(), group.ranks, context.id(), tag)));
}

void comm_create_from_group(Group& group, const char* stringtag, Info* info, Errhandler& errhandler,
                            MPI_Comm* newcomm) {
  if (!is_running()) throw Failure(MPI_ERR_SESSION, "no session exists: call MPI_Session_init first");
  *newcomm = MPI_COMM_NULL;
  if (group.ranks.size() == 0) return;
  message::MessageRuntime& runtime = Process::current()->runtime();
  auto made = message::create_context(runtime, group.ranks, message::no_parent_id, tag_of(stringtag));
  *newcomm = handle_of_new(std::move(made), group, info, errhandler);
}

void intercomm_create(Comm& local_comm, int local_leader, MPI_Comm peer_comm, int remote_leader, int tag,
                      MPI_Comm* newintercomm) {
  check_tag(tag);
  check_leader(local_comm, "local_leader", local_leader);
  message::Bridge bridge;
  if (local_comm.rank() == local_leader) {
    Comm* const peer = find(peer_comm);
    if (peer == nullptr) fail_handle(MPI_ERR_COMM, "peer_comm, on the local leader,", "communicator", peer_comm);
    if (!peer->is_peer(remote_leader)) {
      throw Failure(MPI_ERR_RANK,
                    fmt::format("remote_leader is {}: the ranks of {}, the peer communicator, are 0 to {}",
                                remote_leader, description(*peer), peer->peers - 1));
    }
    bridge = {peer->context.get(), remote_leader};
  }
  *newintercomm = handle_or_null(
      new_comm(local_comm, message::create_inter_context(*local_comm.context, local_leader, bridge, tag)));
}

// A communicator of each side, and one of both leaders, which is the bridge.
void intercomm_create_from_groups(Group& local_group, int local_leader, Group& remote_group, int remote_leader,
                                  const char* stringtag, Info* info, Errhandler& errhandler, MPI_Comm* newintercomm) {
  if (!is_running()) throw Failure(MPI_ERR_SESSION, "no session exists: call MPI_Session_init first");
  const auto leader = [](const Group& group, int rank, const char* argument) {
    if (rank >= 0 && rank < group.ranks.size()) return group.ranks.at(Rank{rank});
    throw Failure(MPI_ERR_RANK, fmt::format("{} is {}: its group has {} rank{}", argument, rank, group.ranks.size(),
                                            group.ranks.size() == 1 ? "" : "s"));
  };
  const JobRank mine = leader(local_group, local_leader, "local_leader");
  const JobRank other = leader(remote_group, remote_leader, "remote_leader");
  message::MessageRuntime& runtime = Process::current()->runtime();
  const int tag = tag_of(stringtag);
  const auto side = message::create_context(runtime, local_group.ranks, message::no_parent_id, tag);
  mpi::check(side.status);
  message::NewContext leaders;
  if (Process::current()->job().rank() == mine) {
    const std::vector<JobRank> both{std::min(mine, other), std::max(mine, other)};
    leaders = message::create_context(runtime, tonari::Group(both), message::no_parent_id, tag);
    mpi::check(leaders.status);
  }
  const message::Bridge bridge{leaders.value.get(), mine < other ? 1 : 0};
  auto made = message::create_inter_context(*side.value, local_leader, bridge, tag);
  *newintercomm = handle_of_new(std::move(made), local_group, info, errhandler);
}

void intercomm_merge(Comm& intercomm, int high, MPI_Comm* newintracomm) {
  if (!intercomm.is_inter) throw Failure(MPI_ERR_COMM, "intercomm has one group only: it is no inter-communicator");
  *newintracomm = handle_or_null(new_comm(intercomm, message::merge(*intercomm.context, high != 0)));
}

void comm_free(MPI_Comm* comm) {
  Comm* const found = find(*comm);
  if (found == nullptr) fail_handle(MPI_ERR_COMM, "comm", "communicator", *comm);
  if (number_of(*comm) < first_address) throw Failure(MPI_ERR_COMM, "comm is predefined: MPI_Finalize frees it");
  delete_attributes(found->attributes, *comm);
  (void)Ref<Comm>::adopt(found);
  *comm = MPI_COMM_NULL;
}
void comm_disconnect(MPI_Comm* comm) { comm_free(comm); }

// No rank was spawned: jobs do not grow.
void comm_get_parent(MPI_Comm* parent) { *parent = MPI_COMM_NULL; }

}  // namespace tonari::mpi
