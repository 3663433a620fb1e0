// Question: as bench/splash_fft.hpp, put to an MPI: its one-sided operations, and its all-to-all.

#include "splash_fft.hpp"

#include "rivals/mpi/mpi_fft_wire.hpp"
#include "rivals/mpi/mpi_wire.hpp"

int main(int argc, char** argv) {
  using namespace tonari::bench;
  return run_rival(argc, argv, [](MpiWire& wire, const Options& options, Output& output) {
    fft::run(wire, options, output, [](std::size_t bytes) { return fft::MpiMemory(bytes); });
  });
}
