// Buffers that are no memory: if one side's buffer of a long message is not mapped, or only in part, both sides get
// bad_address, and later messages arrive.
#include "../../support/exchange.hpp"

#include <tonari/tonari.hpp>

#include <sys/mman.h>

#include <cstdio>
#include <exception>

namespace {

using namespace tonari;

/// Address space of which the first `usable` bytes are memory.
class Ground {
 public:
  Ground(std::size_t bytes, std::size_t usable) : bytes_(bytes) {
    start_ = ::mmap(nullptr, bytes, PROT_NONE, flags, -1, 0);
    test::require(start_ != MAP_FAILED && (usable == 0 || ::mprotect(start_, usable, PROT_READ | PROT_WRITE) == 0),
                  "mmap");
  }
  Ground(Ground&&) = delete;
  ~Ground() { ::munmap(start_, bytes_); }
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

 private:
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  std::size_t bytes_;
  void* start_;
};

void exchange(Communicator& world, std::size_t bytes, std::size_t usable, int bad_rank, bool posted, SendMode mode) {
  constexpr int tag = 1;
  const Ground ground(bytes, world.rank() == bad_rank ? usable : bytes);
  const bool all_good = usable == bytes;
  Status status = Status::ok;
  if (world.rank() == 0) {
    if (posted) test::require_ok(world.receive(std::span<int>(), Rank{1}, Tag{test::ready_tag}).status);
    status = world.send(ground.bytes(), Rank{1}, Tag{tag}, mode);
  } else {
    Request request;
    if (posted) {
      request = world.start_receive(ground.bytes(), Rank{0}, Tag{tag});
      test::require_ok(world.send(std::span<const int>(), Rank{0}, Tag{test::ready_tag}));
    } else {
      test::require_ok(world.probe(Rank{0}, Tag{tag}).status);
      request = world.start_receive(ground.bytes(), Rank{0}, Tag{tag});
    }
    status = request.wait().status;
  }
  test::require(status == (all_good ? Status::ok : Status::bad_address), std::to_string(usable) + " good bytes of " +
                                                                             std::to_string(bytes) + " returned " +
                                                                             std::string(to_string(status)));
}

}  // namespace

int main() {
  try {
    Job job;
    Communicator world(job);
    for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{12} << 20}) {
      for (const std::size_t usable : {std::size_t{0}, bytes / 2, bytes - 4096, bytes}) {
        for (const int bad_rank : {0, 1}) {
          for (const bool posted : {true, false}) {
            for (const auto mode : {SendMode::standard, SendMode::when_posted}) {
              exchange(world, bytes, usable, bad_rank, posted, mode);
            }
          }
        }
      }
    }
    test::exchange_all(world, 0, 1);
    std::printf("rank %d did it\n", world.rank().value());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
