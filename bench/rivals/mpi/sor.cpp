// Question: as bench/sor.hpp, put to an MPI.

#include "sor.hpp"

#include "rivals/mpi/mpi_wire.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival(argc, argv,
                   [](MpiWire& wire, const Options& options, Output& output) { sor::run(wire, options, output); });
}
