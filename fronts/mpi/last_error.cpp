#include "mpi/last_error.hpp"

#include <utility>

namespace tonari::mpi {

namespace {
struct Last {
  int code = 0;
  std::string text;
};
Last& last() noexcept {
  static thread_local Last mine;
  return mine;
}
}  // namespace

void remember_error(int code, std::string text) noexcept { last() = {code, std::move(text)}; }
std::string last_error(int code) { return last().code == code ? last().text : std::string(); }

}  // namespace tonari::mpi
