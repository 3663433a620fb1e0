#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/futex.hpp"
#include "base/mapping.hpp"

#include <tonari/status.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <new>
#include <string>
#include <thread>

namespace tonari {
namespace {

constexpr std::size_t page_bytes = 4096;

FileDescriptor memory_file(std::size_t bytes) {
  FileDescriptor file{::memfd_create("tonari-test", MFD_CLOEXEC)};
  EXPECT_EQ(::ftruncate(file.number(), static_cast<off_t>(bytes)), 0);
  return file;
}

template <class Body>
int exit_status_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// True if the thread, or the process of one thread, sleeps in the kernel. False if it does not exist.
bool sleeps(pid_t number) {
  std::ifstream file("/proc/" + std::to_string(number) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

// Returns true once the thread that stores its number there sleeps, and false after 30 s.
bool wait_until_asleep(const std::atomic<pid_t>& number) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (number == 0 || !sleeps(number)) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

// mincore() tells whether an address is mapped without touching it.
bool mapped(std::byte* address) {
  unsigned char resident;
  return ::mincore(address, page_bytes, &resident) == 0;
}

TEST(BaseMapping, SharesOneFileBetweenMappings) {
  const FileDescriptor file = memory_file(page_bytes);
  const Mapping one(file.number(), page_bytes, "a test");
  const Mapping other(file.number(), page_bytes, "a test");

  one.bytes()[17] = std::byte{42};

  EXPECT_EQ(other.bytes()[17], std::byte{42});
}

TEST(BaseMapping, IsNotInheritedByForkedChildren) {
  const FileDescriptor file = memory_file(page_bytes);
  const Mapping mapping(file.number(), page_bytes, "a test");

  const int mapped_in_child = exit_status_of_child([&] { return mapped(mapping.bytes().data()) ? 1 : 0; });

  EXPECT_EQ(mapped_in_child, 0);
  EXPECT_TRUE(mapped(mapping.bytes().data()));
}

TEST(BaseMapping, UnmapsOnceAndOnlyWhereItWasMovedTo) {
  const FileDescriptor file = memory_file(page_bytes);
  Mapping outer;
  std::byte* address = nullptr;
  {
    Mapping inner(file.number(), page_bytes, "a test");
    address = inner.bytes().data();
    outer = std::move(inner);
  }
  EXPECT_TRUE(mapped(address));

  outer = Mapping{};

  EXPECT_FALSE(mapped(address));
}

TEST(BaseMapping, NamesTheMemoryItCouldNotMapAndTheCause) {
  try {
    const Mapping mapping(-1, page_bytes, "the arena");
    FAIL() << "mapped a descriptor that is none";
  } catch (const SetupError& error) {
    EXPECT_STREQ(
        error.what(),
        "mmap of 4096 bytes for the arena: Bad file descriptor; the file must be open for reading and writing");
  }
}

TEST(BaseDescriptor, ClosesOnceAndOnlyWhereItWasMovedTo) {
  FileDescriptor outer;
  int number = -1;
  {
    FileDescriptor inner = memory_file(page_bytes);
    number = inner.number();
    outer = std::move(inner);
    EXPECT_FALSE(inner);
  }
  EXPECT_EQ(outer.number(), number);
  EXPECT_EQ(::lseek(number, 0, SEEK_CUR), 0);

  outer = FileDescriptor{};

  EXPECT_EQ(::lseek(number, 0, SEEK_CUR), -1);
}

TEST(BaseError, NamesTheCallTheCauseAndTheRemedy) {
  try {
    errno = EACCES;
    throw_system_error("open of x", "ask its owner");
  } catch (const SetupError& error) {
    EXPECT_STREQ(error.what(), "open of x: Permission denied; ask its owner");
  }
  try {
    throw_system_error(ENOENT, "open of y");
  } catch (const SetupError& error) {
    EXPECT_STREQ(error.what(), "open of y: No such file or directory");
  }
}

TEST(BaseFutex, ReturnsAtOnceWhenTheWordHasChanged) {
  const std::atomic<std::uint32_t> word{1};

  const auto start = std::chrono::steady_clock::now();
  futex_wait(word, 0, std::chrono::seconds(60));

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(BaseFutex, SleepsUntilTheTimeIsOver) {
  const std::atomic<std::uint32_t> word{0};

  const auto start = std::chrono::steady_clock::now();
  futex_wait(word, 0, std::chrono::milliseconds(20));

  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(15));
}

TEST(BaseFutex, ADoorbellWakesASleepingThread) {
  std::atomic<std::uint32_t> doorbell{0};
  std::atomic<pid_t> number{0};
  std::thread sleeper([&] {
    number = ::gettid();
    while (doorbell.load(std::memory_order_acquire) == 0) futex_wait(doorbell, 0, std::chrono::seconds(60));
  });

  EXPECT_TRUE(wait_until_asleep(number));
  const auto start = std::chrono::steady_clock::now();
  ring_doorbell(doorbell);
  sleeper.join();

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(BaseFutex, ADoorbellWakesASleepingProcess) {
  const FileDescriptor file = memory_file(page_bytes);
  const Mapping ours(file.number(), page_bytes, "a test");
  struct Shared {
    std::atomic<std::uint32_t> doorbell{0};
    std::atomic<pid_t> sleeper{0};
  };
  auto& shared = *::new (ours.bytes().data()) Shared;
  std::thread ringer([&] {
    EXPECT_TRUE(wait_until_asleep(shared.sleeper));
    ring_doorbell(shared.doorbell);
  });

  const int rung = exit_status_of_child([&] {
    const Mapping theirs(file.number(), page_bytes, "a test");
    auto& [word, sleeper] = *reinterpret_cast<Shared*>(theirs.bytes().data());
    sleeper = ::getpid();
    const auto start = std::chrono::steady_clock::now();
    while (word.load(std::memory_order_acquire) == 0) futex_wait(word, 0, std::chrono::seconds(60));
    return std::chrono::steady_clock::now() - start < std::chrono::seconds(30) ? 1 : 0;
  });
  ringer.join();

  EXPECT_EQ(rung, 1);
}

}  // namespace
}  // namespace tonari
