// measure.hpp for an MPI.

#include "measure.hpp"

#include "wires/mpi_one_sided.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival<MpiOneSidedWire>(argc, argv, [](MpiOneSidedWire& wire, const Options& options, Output& output) {
    atomics::run(wire, options, output);
  });
}
