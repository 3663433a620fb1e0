#include "mpi/last_error.hpp"

#include "mpi.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tonari::mpi {

namespace {

struct Last {
  int code;
  std::string text;
};
std::vector<Last>& last() noexcept {
  static thread_local std::vector<Last> mine;
  return mine;
}

std::vector<Last>::iterator find_last(int code) noexcept { return std::ranges::find(last(), code, &Last::code); }

}  // namespace

void remember_error(int code, std::string text) noexcept {
  if (code != MPI_ERR_IN_STATUS) last().clear();
  last().push_back({code, std::move(text)});
}

void remember_part(int code, std::string text, bool is_first) noexcept {
  if (is_first) last().clear();
  if (find_last(code) == last().end()) last().push_back({code, std::move(text)});
}

std::string last_error(int code) {
  const auto found = find_last(code);
  return found != last().end() ? found->text : std::string();
}

}  // namespace tonari::mpi
