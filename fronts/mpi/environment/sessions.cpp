#include "functions.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/messages/attached_buffer.hpp"
#include "mpi/process.hpp"
#include "mpi/text.hpp"

#include <fmt/format.h>

#include <strings.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

// Sessions, and their sets of processes.
namespace tonari::mpi {

namespace {

constexpr std::array process_sets = {"mpi://WORLD", "mpi://SELF"};

// The ranks of a process set. Throws Failure if there is no set of this name.
std::vector<JobRank> ranks_of_set(const char* name) {
  Job& job = Process::current()->job();
  if (::strcasecmp(name, process_sets[0]) == 0) {
    const auto all = job.ranks();
    return {all.begin(), all.end()};
  }
  if (::strcasecmp(name, process_sets[1]) == 0) return {job.rank()};
  throw Failure(MPI_ERR_ARG,
                fmt::format("pset_name is {}: the process sets are {}, {}", name, process_sets[0], process_sets[1]));
}

// Any thread may call any function, whichever level is requested.
void check_thread_level(const Hints& hints) {
  const auto found = std::ranges::find(hints, "thread_level", &Hints::value_type::first);
  if (found == hints.end()) return;
  constexpr std::array levels = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  if (std::ranges::none_of(levels, [&](int level) { return found->second == thread_level_name(level); })) {
    throw Failure(MPI_ERR_INFO_VALUE,
                  fmt::format("thread_level is {}: it must be MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, "
                              "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
                              found->second));
  }
}

}  // namespace

void session_init(Info* info, Errhandler& errhandler, MPI_Session* session) {
  using Kind = Errhandler::Kind;
  if (errhandler.kind == Kind::comm || errhandler.kind == Kind::win || errhandler.kind == Kind::file) {
    throw Failure(MPI_ERR_ERRHANDLER,
                  "errhandler was made for another kind of object: make it with MPI_Session_create_errhandler");
  }
  Ref<Session> made = Ref<Session>::adopt(new Session);
  made->errhandler = Ref(&errhandler);
  if (info != nullptr) {
    check_thread_level(info->hints);
    made->hints = info->hints;
  }
  Process::enter_session();
  *session = made.take();
}

void session_finalize(MPI_Session* session) {
  Session* const object = find(*session);
  if (object == nullptr) fail_handle(MPI_ERR_SESSION, "session", "session", *session);
  *session = MPI_SESSION_NULL;
  drop_buffer(*object->buffer);
  Ref<Session>::adopt(object);
  Process::leave_session();
}

void session_get_info(Session& session, MPI_Info* info_used) {
  auto* const made = new Info;
  made->hints = session.hints;
  set_hint(made->hints, "thread_level", thread_level_name(session.thread_level));
  set_hint(made->hints, "mpi_memory_alloc_kinds", memory_kinds);
  *info_used = made;
}

void session_get_num_psets(Session&, Info*, int* npset_names) { *npset_names = static_cast<int>(process_sets.size()); }

// `pset_len` counts the zero at the end. With 0 only the length is returned.
void session_get_nth_pset(Session&, Info*, int n, int* pset_len, char* pset_name) {
  if (n < 0 || static_cast<std::size_t>(n) >= process_sets.size()) {
    throw Failure(MPI_ERR_ARG,
                  fmt::format("n is {}: there are {} process sets, counted from 0", n, process_sets.size()));
  }
  if (*pset_len < 0) throw Failure(MPI_ERR_ARG, fmt::format("*pset_len is {}: it must not be negative", *pset_len));
  const std::string_view name = process_sets[static_cast<std::size_t>(n)];
  int length = 0;
  if (*pset_len > 0) give_text(name, pset_name, static_cast<std::size_t>(*pset_len), &length);
  *pset_len = static_cast<int>(name.size()) + 1;
}

void session_get_pset_info(Session&, const char* pset_name, MPI_Info* info) {
  const std::size_t size = ranks_of_set(pset_name).size();
  auto* const made = new Info;
  made->hints = {{"mpi_size", std::to_string(size)}};
  *info = made;
}

void group_from_session_pset(Session& session, const char* pset_name, MPI_Group* newgroup) {
  *newgroup = MPI_GROUP_NULL;
  *newgroup = new Group(tonari::Group(ranks_of_set(pset_name)), session.buffer);
}

}  // namespace tonari::mpi
