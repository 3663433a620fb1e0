// A layout refers to memory and owns none.
// error: class template argument deduction failed
#include <tonari/tonari.hpp>

#include <cstddef>
#include <vector>

std::size_t blocks() {
#ifdef WRONG
  return tonari::Strided{std::vector<int>(100), 10, 1, 10}.blocks;
#else
  std::vector<int> matrix(100);
  return tonari::Strided{matrix, 10, 1, 10}.blocks;
#endif
}
