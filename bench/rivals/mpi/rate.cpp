// Question: as bench/rate.hpp, put to an MPI.

#include "rate.hpp"

#include "rivals/mpi/mpi_wire.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival(argc, argv,
                   [](MpiWire& wire, const Options& options, Output& output) { rate::run(wire, options, output); });
}
