#include "job/handshake.hpp"
#include "job/job_server.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace tonari::job {
namespace {

TEST(Handshake, LayoutOfARequestIsPinnedByteByByte) {
  Request request{.step = Step::hello, .rank = 3, .copies = 1, .probe = 0x1122334455667788};
  request.secret[0] = 's';
  request.host.page_bytes = 4096;
  std::array<unsigned char, sizeof request> bytes;
  std::memcpy(bytes.data(), &request, sizeof request);

  const std::vector<unsigned char> wanted{0xa5, 't',  'o',  'n',  'a',  'r',  'i',  0,  // magic
                                          1,    0,    0,    0,                          // version
                                          1,    0,    0,    0,                          // hello
                                          3,    0,    0,    0,                          // rank
                                          1,    0,    0,    0,                          // copies
                                          0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  EXPECT_EQ(std::vector<unsigned char>(bytes.begin(), bytes.begin() + 32), wanted);
  const std::vector<unsigned char> page_and_order{0x00, 0x10, 0, 0, 4, 3, 2, 1};
  EXPECT_EQ(std::vector<unsigned char>(bytes.begin() + 88, bytes.begin() + 96), page_and_order);
  EXPECT_EQ(bytes[96], 's');
}

/// A JobServer and its clients, in one process. The server handles a client's message in its next step.
class JobServerTest : public testing::Test {
 protected:
  JobServerTest() : job_server_(2, small()) {
    for (const std::string& pair : job_server_.environment()) {
      if (pair.starts_with("TONARI_SECRET=")) secret_ = pair.substr(14);
    }
  }

  static Settings small() {
    Settings settings;
    settings.ring_slots = 64;
    return settings;
  }

  Request hello(int rank) {
    Request request{.step = Step::hello, .rank = rank};
    request.host = this_host_identity();
    secret_.copy(request.secret.data(), request.secret.size());
    return request;
  }

  FileDescriptor send(const Request& request, std::size_t bytes = sizeof(Request)) {
    FileDescriptor client = try_connect(join_name(::getpid()));
    EXPECT_TRUE(client);
    EXPECT_TRUE(send_message(client, &request, bytes));
    settle();
    return client;
  }

  // Lets the server handle all messages that have arrived.
  void settle() {
    pollfd ready{.fd = job_server_.descriptor(), .events = POLLIN, .revents = 0};
    while (::poll(&ready, 1, 0) > 0) job_server_.step();
  }

  static std::optional<Reply> answer(const FileDescriptor& client, FileDescriptor* memory = nullptr) {
    Reply reply;
    if (receive_message(client, &reply, sizeof reply, false, memory) != sizeof reply) return std::nullopt;
    return reply;
  }

  std::string refusal_of(const Request& request, std::size_t bytes = sizeof(Request)) {
    const FileDescriptor client = send(request, bytes);
    const auto reply = answer(client);
    return reply && reply->step == Step::refused ? reply->text.data() : "not refused";
  }

  JobServer job_server_;
  std::string secret_;
};

TEST_F(JobServerTest, StartsRanksOnceAllJoinedAndReleasesThemOnceAllTested) {
  FileDescriptor memory;
  const FileDescriptor first = send(hello(0));
  EXPECT_EQ(answer(first, &memory)->step, Step::welcome);
  EXPECT_EQ(Arena{std::move(memory)}.ranks(), 2);
  EXPECT_FALSE(answer(first));

  const FileDescriptor second = send(hello(1));
  EXPECT_EQ(answer(second)->step, Step::welcome);
  EXPECT_EQ(answer(first)->step, Step::start);
  EXPECT_EQ(answer(second)->step, Step::start);

  Request tested{.step = Step::tested, .rank = 0, .copies = 1};
  ASSERT_TRUE(send_message(first, &tested, sizeof tested));
  settle();
  EXPECT_FALSE(answer(first));
  tested = {.step = Step::tested, .rank = 1, .copies = 0};
  ASSERT_TRUE(send_message(second, &tested, sizeof tested));
  settle();
  const auto go = answer(first);
  ASSERT_TRUE(go);
  EXPECT_EQ(go->step, Step::go);
  EXPECT_EQ(go->copies, 0) << "the ranks copy directly only if all of them can";
  EXPECT_FALSE(job_server_.next_failure());
}

TEST_F(JobServerTest, RefusesAProcessThatIsNotARankOfThisJob) {
  Request request = hello(0);
  request.version = handshake_version + 1;
  EXPECT_NE(refusal_of(request).find("build the program and the tonari command from the same version"),
            std::string::npos);
  request = hello(0);
  request.magic = 1;
  EXPECT_NE(refusal_of(request).find("uses version"), std::string::npos);
  EXPECT_NE(refusal_of(hello(0), 7).find("uses version"), std::string::npos) << "too short";
  request = hello(0);
  request.secret[63] ^= 1;
  EXPECT_NE(refusal_of(request).find("TONARI_SECRET is not this job's"), std::string::npos);
  for (const int rank : {-1, 2, 1 << 30}) {
    EXPECT_NE(refusal_of(hello(rank)).find("the job has ranks 0 to 1"), std::string::npos) << rank;
  }
  request = hello(0);
  request.step = static_cast<Step>(77);
  EXPECT_NE(refusal_of(request).find("TONARI_SECRET"), std::string::npos);
  EXPECT_FALSE(job_server_.next_failure());
  EXPECT_FALSE(job_server_.joined(0));
}

TEST_F(JobServerTest, RefusesHostsThatDiffer) {
  const auto changed = [&](auto change) {
    Request request = hello(0);
    change(request.host);
    return refusal_of(request);
  };

  EXPECT_NE(changed([](auto& host) { host.byte_order = 0x04030201; }).find("byte order"), std::string::npos);
  EXPECT_NE(changed([](auto& host) { host.page_bytes *= 2; }).find("its pages have"), std::string::npos);
  EXPECT_NE(changed([](auto& host) { host.boot_id[0] ^= 1; }).find("different machine"), std::string::npos);
  EXPECT_NE(changed([](auto& host) { host.network_namespace += 1; }).find("different network"), std::string::npos);
  EXPECT_NE(changed([](auto& host) { host.ipc_namespace += 1; }).find("different IPC"), std::string::npos);
}

TEST_F(JobServerTest, RefusesASecondProcessForARank) {
  const FileDescriptor first = send(hello(0));

  EXPECT_NE(refusal_of(hello(0)).find("is this rank already"), std::string::npos);
  EXPECT_EQ(answer(first)->step, Step::welcome);
}

TEST_F(JobServerTest, GivesAnObserverWithoutTheSecretAReadOnlyArena) {
  FileDescriptor memory;
  const FileDescriptor looker = send(Request{.step = Step::look});

  const auto reply = answer(looker, &memory);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->step, Step::welcome);
  EXPECT_EQ(reply->ranks, 2);
  EXPECT_THROW(Arena{std::move(memory)}, SetupError) << "the observer must not be able to map it for writing";
}

TEST_F(JobServerTest, ReportsARankWhoseProgramEndsWhileOthersWait) {
  const FileDescriptor first = send(hello(0));
  ASSERT_EQ(answer(first)->step, Step::welcome);

  job_server_.program_ended(1, 4711, {.signal = 0, .status = 0});

  const auto failure = job_server_.next_failure();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->rank, 1);
  EXPECT_TRUE(failure->stops);
  EXPECT_NE(failure->text.find("rank 1 (pid 4711"), std::string::npos);
  EXPECT_EQ(answer(first)->step, Step::stop);
  EXPECT_EQ(answer(send(hello(1)))->step, Step::stop) << "a rank that joins later is told to stop, too";
}

TEST_F(JobServerTest, IgnoresProgramsThatNeverJoin) {
  job_server_.program_ended(0, 1, {.signal = 0, .status = 3});
  job_server_.program_ended(1, 2, {.signal = 9, .status = 0});

  EXPECT_FALSE(job_server_.next_failure());
}

TEST(Ending, IsExactForChildren) {
  const auto ending_of_child = [](auto act) {
    const pid_t child = ::fork();
    if (child == 0) {
      act();
      ::_exit(0);
    }
    const FileDescriptor process = open_process(child);
    pollfd ended{.fd = process.number(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&ended, 1, 20'000), 1);
    const Ending ending = ending_of(process, child);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child) << "the child must remain for waitpid()";
    return ending;
  };

  EXPECT_EQ(ending_of_child([] { ::_exit(7); }).status, 7);
  EXPECT_EQ(ending_of_child([] { ::_exit(0); }).exit_status(), 0);
  const Ending killed = ending_of_child([] { ::kill(::getpid(), SIGKILL); });
  EXPECT_EQ(killed.signal, SIGKILL);
  EXPECT_EQ(killed.exit_status(), 137);
  EXPECT_EQ(describe(killed), "was killed by signal 9 (Killed)");
}

TEST(Ending, IsExactOrUnknownForTheChildOfAnotherProcess) {
  std::array<int, 2> to_child{};
  std::array<int, 2> from_wrapper{};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(from_wrapper.data()), 0);
  const pid_t wrapper = ::fork();
  if (wrapper == 0) {
    const pid_t child = ::fork();
    char go = 0;
    if (child == 0) ::_exit(::read(to_child[0], &go, 1) == 1 ? 9 : 1);
    static_cast<void>(!::write(from_wrapper[1], &child, sizeof child));
    ::waitpid(child, nullptr, 0);
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(from_wrapper[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  const FileDescriptor process = open_process(child);
  ASSERT_TRUE(process);

  ASSERT_EQ(::write(to_child[1], "x", 1), 1);
  ASSERT_EQ(::waitpid(wrapper, nullptr, 0), wrapper);

  const Ending ending = ending_of(process, child);
  EXPECT_TRUE(ending.status == 9 || ending.status == Ending::unknown) << ending.status;
  for (const int end : {to_child[0], to_child[1], from_wrapper[0], from_wrapper[1]}) ::close(end);
}

}  // namespace
}  // namespace tonari::job
