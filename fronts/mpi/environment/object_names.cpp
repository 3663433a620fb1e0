#include "mpi/environment/object_names.hpp"

#include "functions.hpp"
#include "mpi/environment/handle_names.hpp"
#include "mpi/text.hpp"

#include <fmt/format.h>

#include <mutex>
#include <string_view>
#include <utility>

namespace tonari::mpi {

namespace {

constinit std::mutex names;  // every name of every object

void set_name(std::string& to, const char* text) {
  std::string name(std::string_view(text).substr(0, MPI_MAX_OBJECT_NAME - 1));
  const std::lock_guard guard(names);
  to.swap(name);
}

std::string get_name(const std::string& from) {
  const std::lock_guard guard(names);
  return from;
}

}  // namespace

std::string name_of(const Comm& comm) { return get_name(comm.name); }
std::string name_of(const Datatype& type) { return get_name(type.name); }

std::string description(const Comm& comm) {
  std::string name = name_of(comm);
  if (!name.empty()) return name;
  return comm.is_inter ? fmt::format("an inter-communicator with {} remote ranks", comm.peers)
                       : fmt::format("a communicator of {} ranks", comm.peers);
}

std::string description(const Datatype& type) {
  std::string name = name_of(type);
  return name.empty() ? "a derived datatype" : name;
}

void comm_set_name(Comm& comm, const char* comm_name) { set_name(comm.name, comm_name); }
void type_set_name(Datatype& datatype, const char* type_name) { set_name(datatype.name, type_name); }

void comm_get_name(MPI_Comm comm, char* comm_name, int* resultlen) {
  if (comm == MPI_COMM_NULL) return give_text("MPI_COMM_NULL", comm_name, MPI_MAX_OBJECT_NAME, resultlen);
  const Comm* const found = find(comm);
  if (found == nullptr) fail_handle(MPI_ERR_COMM, "comm", "communicator", comm);
  give_text(name_of(*found), comm_name, MPI_MAX_OBJECT_NAME, resultlen);
}

void type_get_name(MPI_Datatype datatype, char* type_name, int* resultlen) {
  if (datatype == MPI_DATATYPE_NULL) return give_text("MPI_DATATYPE_NULL", type_name, MPI_MAX_OBJECT_NAME, resultlen);
  const Datatype* const found = find(datatype);
  if (found == nullptr) fail_handle(MPI_ERR_TYPE, "datatype", "datatype", datatype);
  give_text(name_of(*found), type_name, MPI_MAX_OBJECT_NAME, resultlen);
}

}  // namespace tonari::mpi
