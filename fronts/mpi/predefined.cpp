#include "mpi/predefined.hpp"

#include "mpi/collectives/predefined_ops.hpp"
#include "mpi/datatypes/predefined_types.hpp"
#include "mpi/environment/info_env.hpp"

namespace tonari::mpi {

namespace {

Predefined make_predefined() {
  Predefined made;
  made.types = make_predefined_types();
  made.ops = make_predefined_ops();
  using Kind = Errhandler::Kind;
  made.errhandlers[number_of(MPI_ERRORS_ARE_FATAL) & 3] = new Errhandler(Kind::fatal);
  made.errhandlers[number_of(MPI_ERRORS_ABORT) & 3] = new Errhandler(Kind::abort);
  made.errhandlers[number_of(MPI_ERRORS_RETURN) & 3] = new Errhandler(Kind::returns);
  made.groups[number_of(MPI_GROUP_EMPTY) & 3] = new Group(tonari::Group{}, nullptr);
  made.infos[number_of(MPI_INFO_ENV) & 3] = new Info;
  made.infos[number_of(MPI_INFO_ENV) & 3]->hints = environment_hints(started_arguments());
  made.no_file = new File;
  made.no_file->errhandler = Ref(made.errhandlers[number_of(MPI_ERRORS_RETURN) & 3]);
  const auto make_permanent = [](auto& objects) {
    for (auto* const each : objects) {
      if (each != nullptr) each->make_permanent();
    }
  };
  make_permanent(made.types);
  make_permanent(made.errhandlers);
  make_permanent(made.groups);
  make_permanent(made.infos);
  return made;
}

}  // namespace

// The objects live until the process ends: handles are used in functions that run while it ends.
Predefined predefined = make_predefined();

}  // namespace tonari::mpi
