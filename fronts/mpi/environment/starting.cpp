#include "functions.hpp"
#include "mpi/environment/error_handlers.hpp"
#include "mpi/process.hpp"
#include "mpi/text.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string>

// Starting, ending, and what a program asks about the library.
namespace tonari::mpi {

namespace {

void join(int thread_level) {
  if (Process::phase() == Process::Phase::after) {
    throw Failure(MPI_ERR_OTHER, "MPI_Finalize was called already: a program can use MPI once, or sessions");
  }
  if (Process::phase() == Process::Phase::running) throw Failure(MPI_ERR_OTHER, "MPI_Init was called already");
  Process::start(thread_level);
}

}  // namespace

void init(int*, char***) { join(MPI_THREAD_SINGLE); }

void init_thread(int*, char***, int, int* provided) {
  join(MPI_THREAD_MULTIPLE);
  *provided = MPI_THREAD_MULTIPLE;
}

void initialized(int* flag) { *flag = Process::phase() != Process::Phase::before ? 1 : 0; }
void finalize() {
  if (Process::phase() != Process::Phase::running) {
    throw Failure(MPI_ERR_OTHER,
                  "MPI_Init was not called, or MPI_Finalize was called already; MPI_Session_finalize ends a session");
  }
  Process::finish();
}
void finalized(int* flag) { *flag = Process::phase() == Process::Phase::after ? 1 : 0; }

void abort(Comm& comm, int errorcode) {
  Process::abort(errorcode, fmt::format("tonari: {}{} with code {}", place(), call_text(Function::Abort, Holder(&comm)),
                                        errorcode));
}

void query_thread(int* provided) {
  if (Process::current() == nullptr) throw Failure(MPI_ERR_OTHER, "MPI is not running");
  *provided = Process::current()->thread_level();
}
void is_thread_main(int* flag) { *flag = std::this_thread::get_id() == Process::current()->main_thread() ? 1 : 0; }

void get_version(int* version, int* subversion) {
  *version = MPI_VERSION;
  *subversion = MPI_SUBVERSION;
}

void get_library_version(char* version, int* resultlen) {
  give_text(
      "tonari 0.1.0: the standard ABI of MPI 5.0. `tonari info --mpi` lists the functions that it does not support",
      version, MPI_MAX_LIBRARY_VERSION_STRING, resultlen);
}

void get_processor_name(char* name, int* resultlen) {
  give_text(Process::current()->job().host_name(), name, MPI_MAX_PROCESSOR_NAME, resultlen);
}

double wtime() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double wtick() {
  using Period = std::chrono::steady_clock::period;
  return static_cast<double>(Period::num) / static_cast<double>(Period::den);
}

void pcontrol(int) {}

}  // namespace tonari::mpi
