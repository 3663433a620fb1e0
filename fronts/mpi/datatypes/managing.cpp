#include "functions.hpp"
#include "mpi/datatypes/derived.hpp"
#include "mpi/environment/handle_names.hpp"

#include <fmt/format.h>

// Commit, copy, free, and what a datatype says about itself.
namespace tonari::mpi {

namespace {

Datatype& find_or_refuse(MPI_Datatype handle) {
  Datatype* const type = find(handle);
  if (type != nullptr) return *type;
  fail_handle(MPI_ERR_TYPE, "datatype", "datatype", handle);
}

}  // namespace

void type_commit(MPI_Datatype* datatype) {
  Datatype& type = find_or_refuse(*datatype);
  refuse_absent(type, "datatype");
  if (!type.is_committed) type.is_committed = true;
}

void type_free(MPI_Datatype* datatype) {
  Datatype& type = find_or_refuse(*datatype);
  if (type.is_predefined) {
    throw Failure(MPI_ERR_TYPE, fmt::format("datatype is {}, which is predefined: only types that the program has made "
                                            "can be freed",
                                            type.name.empty() ? "a type of MPI_Type_create_f90_*" : type.name));
  }
  delete_attributes(type.attributes, *datatype);
  (void)Ref<Datatype>::adopt(&type);
  *datatype = MPI_DATATYPE_NULL;
}

void type_dup(Datatype& oldtype, MPI_Datatype* newtype) {
  refuse_absent(oldtype, "oldtype");
  Construction construction(MPI_COMBINER_DUP, false);
  construction.add(oldtype);
  auto copy = Ref<Datatype>::adopt(copy_of(oldtype));
  copy->construction = std::make_shared<const Construction>(std::move(construction));
  copy_attributes(oldtype.attributes, handle_of(oldtype), copy->attributes, copy.get());
  *newtype = copy.take();
}

void type_size_x(Datatype& datatype, MPI_Count* size) {
  *size = datatype.is_absent ? MPI_Count{MPI_UNDEFINED} : static_cast<MPI_Count>(datatype.size);
}
void type_size(Datatype& datatype, MPI_Count* size) { type_size_x(datatype, size); }

void type_get_extent_x(Datatype& datatype, MPI_Count* lb, MPI_Count* extent) {
  *lb = datatype.is_absent ? MPI_Count{MPI_UNDEFINED} : datatype.lower;
  *extent = datatype.is_absent ? MPI_Count{MPI_UNDEFINED} : datatype.extent;
}
void type_get_extent(Datatype& datatype, MPI_Count* lb, MPI_Count* extent) { type_get_extent_x(datatype, lb, extent); }

void type_get_true_extent_x(Datatype& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  const message::Layout& layout = datatype.layout;
  *true_lb = datatype.is_absent ? MPI_Count{MPI_UNDEFINED} : layout.true_lower();
  *true_extent = datatype.is_absent ? MPI_Count{MPI_UNDEFINED} : layout.true_upper() - layout.true_lower();
}
void type_get_true_extent(Datatype& datatype, MPI_Count* true_lb, MPI_Count* true_extent) {
  type_get_true_extent_x(datatype, true_lb, true_extent);
}

}  // namespace tonari::mpi
