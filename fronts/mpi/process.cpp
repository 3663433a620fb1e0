#include "mpi/process.hpp"

#include "mpi/checks.hpp"
#include "mpi/failure.hpp"
#include "mpi/foreign_launcher.hpp"
#include "mpi/predefined.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace tonari::mpi {

namespace {

std::unique_ptr<Process>& instance() {
  static std::unique_ptr<Process> process;
  return process;
}
// Relaxed: a program orders its calls of MPI_Init and MPI_Finalize with all others itself.
constinit std::atomic<Process*> running{nullptr};
constinit std::atomic<Process::Phase> phase_now{Process::Phase::before};

void make_predefined(Process& process) {
  auto* const world = new Comm(process.runtime().world());
  world->name = "MPI_COMM_WORLD";
  predefined.comms[number_of(MPI_COMM_WORLD) & 3] = world;
}

void drop_predefined() noexcept {
  for (Comm*& comm : predefined.comms) {
    delete comm;
    comm = nullptr;
  }
}

}  // namespace

Process::Process(int thread_level)
    : runtime_(message::MessageRuntime::of(job_.session())), thread_level_(thread_level) {
  job_.session().name_calls_with([]() noexcept {
    return std::string_view(function_names[static_cast<std::size_t>(current_function)]);
  });
}

void Process::start(int thread_level) {
  refuse_foreign_launcher();
  try {
    instance().reset(new Process(thread_level));
    make_predefined(*instance());
  } catch (const SetupError& error) {
    throw Failure(MPI_ERR_OTHER, error.what());
  }
  running.store(instance().get(), std::memory_order_relaxed);
  phase_now.store(Phase::running, std::memory_order_relaxed);
}

void Process::finish() {
  running.store(nullptr, std::memory_order_relaxed);
  phase_now.store(Phase::after, std::memory_order_relaxed);
  drop_predefined();
  instance().reset();
}

Process* Process::current() noexcept { return running.load(std::memory_order_relaxed); }
Process::Phase Process::phase() noexcept { return phase_now.load(std::memory_order_relaxed); }

void Process::abort(int code, const std::string& text) noexcept {
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  std::_Exit(code);
}

}  // namespace tonari::mpi
