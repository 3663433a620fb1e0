#include "mpi/process.hpp"

#include "mpi/checks.hpp"
#include "mpi/environment/error_handlers.hpp"
#include "mpi/environment/info_env.hpp"
#include "mpi/failure.hpp"
#include "mpi/foreign_launcher.hpp"
#include "mpi/messages/ending.hpp"
#include "mpi/predefined.hpp"
#include "mpi/requests/awaited.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace tonari::mpi {

namespace {

constinit std::mutex changes;         // protects the changes of the five below
constinit Process* joined = nullptr;  // from joining to leaving; a process that exits without leaving counts as dead
constinit int sessions = 0;           // running now
constinit bool watches_exit = false;  // at_exit() will run
// Relaxed: a program orders its calls of MPI_Init and MPI_Finalize with all others itself.
constinit std::atomic<Process*> running{nullptr};
constinit std::atomic<Process::Phase> phase_now{Process::Phase::before};

Comm* make_comm(const char* name, std::shared_ptr<message::Context> context) {
  auto* const comm = new Comm(std::move(context));
  comm->name = name;
  set_error_handler(*comm, *initial_error_handler());
  comm->make_permanent();
  return comm;
}

void make_predefined(Process& process) {
  constexpr std::uint32_t self_id = 0xfffffff0;  // larger than the ids of all other communicators
  message::MessageRuntime& runtime = process.runtime();
  predefined.comms[number_of(MPI_COMM_WORLD) & 3] = make_comm("MPI_COMM_WORLD", runtime.world());
  predefined.comms[number_of(MPI_COMM_SELF) & 3] =
      make_comm("MPI_COMM_SELF",
                std::make_shared<message::Context>(runtime, tonari::Group(std::vector<JobRank>{process.job().rank()}),
                                                   self_id, std::span<const fabric::BoardPlace>()));
}

void drop_predefined() noexcept {
  for (Comm*& comm : predefined.comms) {
    delete comm;
    comm = nullptr;
  }
}

}  // namespace

Process::Process(int thread_level)
    : job_(job::Session::of_process(job::Session::User::front)),
      runtime_(message::MessageRuntime::of(job_.session())),
      thread_level_(thread_level) {
  job_.session().name_calls_with(&describe_call);
}

void Process::join(int thread_level) {
  if (joined == nullptr) {
    refuse_foreign_launcher();
    (void)initial_error_handler_name();  // throws if it is wrong
    try {
      joined = new Process(thread_level);
    } catch (const SetupError& error) {
      throw Failure(MPI_ERR_OTHER, phase() == Phase::after
                                       ? "MPI_Finalize was called already, and has left the job: begin "
                                         "a session before it to use MPI afterwards"
                                       : error.what());
    }
    if (!watches_exit) watches_exit = std::atexit([] { at_exit(); }) == 0;
  }
  running.store(joined, std::memory_order_relaxed);
}

void Process::start(int thread_level) {
  const std::lock_guard guard(changes);
  join(thread_level);
  joined->thread_level_ = thread_level;
  joined->main_thread_ = std::this_thread::get_id();
  make_predefined(*joined);
  refresh_environment();
  phase_now.store(Phase::running, std::memory_order_relaxed);
}

void Process::finish() {
  delete_attributes(find(MPI_COMM_SELF)->attributes, MPI_COMM_SELF);
  end_messages();
  const std::lock_guard guard(changes);
  phase_now.store(Phase::after, std::memory_order_relaxed);
  drop_predefined();
  leave_unless_used();
}

void Process::enter_session() {
  const std::lock_guard guard(changes);
  join(MPI_THREAD_MULTIPLE);
  ++sessions;
}

void Process::leave_session() {
  const std::lock_guard guard(changes);
  --sessions;
  if (phase() != Phase::running) leave_unless_used();
}

// A process that has not used the world model may begin another session.
void Process::leave_unless_used() {
  if (sessions > 0) return;
  running.store(nullptr, std::memory_order_relaxed);
  if (phase() == Phase::after) delete std::exchange(joined, nullptr);
}

void Process::at_exit() noexcept {
  const std::unique_lock guard(changes, std::try_to_lock);  // another thread may be leaving, or ending the process
  if (!guard.owns_lock() || joined == nullptr || !joined->job_.session().in_own_process()) return;
  // A session that is never finalised does no harm after MPI_Finalize.
  if (phase() == Phase::after || (phase() == Phase::before && sessions == 0)) {
    delete std::exchange(joined, nullptr);
    return;
  }
  if (std::getenv("TONARI_JOIN") != nullptr) return;  // `tonari run` says so
  std::fprintf(stderr, "tonari: rank %d exits without %s\n", joined->job_.rank().value(),
               phase() == Phase::running ? "MPI_Finalize" : "MPI_Session_finalize");
}

Process* Process::current() noexcept { return running.load(std::memory_order_relaxed); }
Process::Phase Process::phase() noexcept { return phase_now.load(std::memory_order_relaxed); }

void Process::abort(int code, const std::string& text) noexcept {
  if (!text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
  if (joined != nullptr) joined->job_.abort(code);
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace tonari::mpi
