// measure.hpp for an MPI: its one-sided operations, and its all-to-all.

#include "measure.hpp"

#include "mpi_memory.hpp"
#include "wires/mpi.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival(argc, argv, [](MpiWire& wire, const Options& options, Output& output) {
    splash_fft::run(wire, options, output, [](std::size_t bytes) { return splash_fft::MpiMemory(bytes); });
  });
}
