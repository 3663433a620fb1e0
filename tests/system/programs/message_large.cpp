// A message and a broadcast longer than 32 bits count, between processes, in little memory.
//
// The buffer is address space into which one small file is mapped again and again, but for three windows of memory of
// their own: at its start, around 2 GiB, and around 4 GiB, where it ends. Every byte of a window tells its offset, so
// one that was cut, or put where its offset modulo 2^31 or 2^32 points, is seen; the rest is only counted on to change.
#include "../../support/random.hpp"
#include "../../support/require.hpp"

#include <tonari/tonari.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>

namespace {

using namespace tonari;

constexpr std::size_t message_bytes = (std::size_t{4} << 30) + 12345;
constexpr std::size_t filler_bytes = std::size_t{64} << 20;
constexpr std::size_t mapped_bytes = (message_bytes / filler_bytes + 1) * filler_bytes;
constexpr std::size_t window_bytes = std::size_t{1} << 20;
constexpr std::array<std::size_t, 3> windows{0, (std::size_t{2} << 30) - window_bytes / 2,
                                             (std::size_t{4} << 30) - window_bytes / 2};

class Buffer {
 public:
  Buffer() {
    const int file = ::memfd_create("filler", MFD_CLOEXEC);
    test::require(file >= 0 && ::ftruncate(file, filler_bytes) == 0, "memfd_create");
    start_ = map(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    for (std::size_t at = 0; at < mapped_bytes; at += filler_bytes) {
      map(start_ + at, filler_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file);
    }
    ::close(file);
    for (const std::size_t at : windows) {
      map(start_ + at, window_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    }
  }
  Buffer(Buffer&&) = delete;
  ~Buffer() { ::munmap(start_, mapped_bytes); }

  [[nodiscard]] std::span<std::byte> message() const { return {start_, message_bytes}; }

  void fill(std::uint64_t seed) const {
    std::ranges::fill(filler(), filling(seed));
    for (const std::size_t at : windows) std::ranges::copy(test::pattern(window_bytes, at + seed), start_ + at);
  }
  void empty() const {
    std::ranges::fill(filler(), never_sent);
    for (const std::size_t at : windows) std::fill_n(start_ + at, window_bytes, never_sent);
  }
  void check(std::uint64_t seed) const {
    test::require(std::ranges::count(filler(), filling(seed)) == filler_bytes, "some of it never came");
    for (const std::size_t at : windows) {
      const auto expected = test::pattern(window_bytes, at + seed);
      const std::size_t sent = std::min(window_bytes, message_bytes - at);
      test::require(std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(sent), start_ + at),
                    "the bytes around " + std::to_string(at) + " came changed");
      test::require(std::count(start_ + at + sent, start_ + at + window_bytes, never_sent) ==
                        static_cast<std::ptrdiff_t>(window_bytes - sent),
                    "something was written behind the buffer");
    }
  }

 private:
  static constexpr std::byte never_sent{0xee};
  static std::byte filling(std::uint64_t seed) { return static_cast<std::byte>(seed); }
  static std::byte* map(void* where, std::size_t bytes, int protection, int flags, int file) {
    void* const start = ::mmap(where, bytes, protection, flags, file, 0);
    test::require(start != MAP_FAILED, std::string("mmap: ") + std::strerror(errno));
    return static_cast<std::byte*>(start);
  }
  // One of the places where it is mapped whole.
  [[nodiscard]] std::span<std::byte> filler() const { return {start_ + filler_bytes, filler_bytes}; }

  std::byte* start_ = nullptr;
};

}  // namespace

int main() {
  try {
    Job job;
    Communicator world(job);
    const Buffer buffer;
    const auto bytes = buffer.message();
    if (world.rank() == 0) {
      buffer.fill(1);
      test::require_ok(world.send(bytes, Rank{1}));
    } else {
      buffer.empty();
      Request receive = world.start_receive(bytes, Rank{0});
      const Result<Envelope> result = receive.wait();
      test::require_ok(result.status);
      test::require(result.value.bytes == message_bytes, "another length came");
      buffer.check(1);
    }
    world.rank() == 1 ? buffer.fill(2) : buffer.empty();
    test::require_ok(world.broadcast(bytes, Rank{1}));
    if (world.rank() == 0) buffer.check(2);
    std::printf("rank %d did it\n", world.rank().value());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
