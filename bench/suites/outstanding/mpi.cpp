// measure.hpp for an MPI.

#include "measure.hpp"

#include "wires/mpi.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival(argc, argv, [](MpiWire& wire, const Options& options, Output& output) {
    outstanding::run(wire, options, output);
  });
}
