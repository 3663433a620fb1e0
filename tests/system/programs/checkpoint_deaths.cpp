// A checkpoint is loaded, and the next one saved; in the midst of it a rank is killed, and the others outlive that.
//
//   checkpoint_deaths FILE VICTIM POINT load|save
//
// POINT counts what the victim does with files in that call, from 1 on: it dies before it does so. Rank 0 says what
// step it has loaded and saved; the survivors, why a call was refused.
#include <tonari/checkpoint.hpp>
#include <tonari/tonari.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

const std::thread::id main_thread = std::this_thread::get_id();
int points_left = 0;

void come_to_a_point() {
  if (std::this_thread::get_id() == main_thread && points_left != 0 && --points_left == 0) std::raise(SIGKILL);
}

}  // namespace

// The runtime calls these instead of libc's functions.
extern "C" {
int fsync(int file) {
  come_to_a_point();
  return static_cast<int>(::syscall(SYS_fsync, file));
}
int rename(const char* from, const char* to) noexcept {
  come_to_a_point();
  return static_cast<int>(::syscall(SYS_rename, from, to));
}
ssize_t pwrite(int file, const void* bytes, std::size_t count, off_t place) {
  come_to_a_point();
  return ::syscall(SYS_pwrite64, file, bytes, count, place);
}
ssize_t pread(int file, void* bytes, std::size_t count, off_t place) {
  come_to_a_point();
  return ::syscall(SYS_pread64, file, bytes, count, place);
}
}

namespace {

using namespace tonari;

constexpr std::size_t words = 400'000;  // four pieces

/// Calls for a load or a save. False: it was refused.
template <class Call>
bool outlives(const Job& job, int points, Call call) {
  points_left = points;
  try {
    call();
  } catch (const SetupError& error) {
    std::printf("rank %d: %s\n", job.rank().value(), error.what());
    return false;
  }
  points_left = 0;
  return true;
}

void expect(const shared_array<std::uint64_t>& array, std::uint64_t step) {
  for (std::size_t i = 0; i < words; ++i) {
    if (array[i] != step * i) throw std::runtime_error("a word is not as it was saved");
  }
}

void run(const std::string& file, int victim, int point, bool in_load) {
  Job job;
  job.on_death([](const Death&) {});
  ArrayOptions options;
  options.placement = Placement::cyclic;  // so that each piece has pages of all ranks
  const shared_array<std::uint64_t> array(job, words, options);
  const int points = job.rank() == victim ? point : 0;

  std::uint64_t step = 0;
  const auto load = [&] { step = share::load(job, file).value_or(0); };
  if (!outlives(job, in_load ? points : 0, load)) return;
  expect(array, step);
  if (job.rank() == 0) std::printf("loaded %llu\n", static_cast<unsigned long long>(step));
  if (share::barrier(job) != Status::ok) throw std::runtime_error("a barrier failed");

  const auto [first, count] = share::part_of(words, job.rank(), job.size());
  for (std::size_t i = first; i < first + count; ++i) array[i] = (step + 1) * i;
  if (!outlives(job, in_load ? 0 : points, [&] { share::save(job, file, step + 1); })) return;
  if (job.rank() == 0) std::printf("saved %llu\n", static_cast<unsigned long long>(step + 1));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 5) return 2;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // lines printed before a death are not lost
  run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::string(argv[4]) == "load");
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
