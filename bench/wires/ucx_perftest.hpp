#pragma once

#include "harness/placement.hpp"
#include "harness/worker.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace tonari::bench::ucx {

/// Transports within a host: shared memory, and copies between processes.
inline constexpr const char* transports = "posix,sysv,cma,self";

[[noreturn]] inline void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// The transports of --transports, or those within a host.
inline std::string transports_of(const Options& options) { return options.text("transports", transports); }

/// A child process whose output is read line by line. The destructor ends it; the kernel ends it when this process
/// dies.
class Child {
 public:
  /// Starts it on the allowed processor number `processor`, or unbound if that is negative.
  Child(std::vector<std::string> arguments, int processor, const std::string& over = transports) : name_(arguments[0]) {
    arguments.insert(arguments.begin(), {"stdbuf", "-oL"});  // otherwise it buffers its lines until it ends
    std::vector<char*> words;
    for (auto& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_system_error("pipe2");
    const auto parent = ::getpid();
    process_ = ::fork();
    if (process_ < 0) throw_system_error("fork for " + name_);
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      if (processor >= 0) bind_to_processor(processor);
      ::setenv("UCX_TLS", over.c_str(), 1);
      ::dup2(ends[1], STDOUT_FILENO);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_.reset(::fdopen(ends[0], "r"));
  }
  Child(Child&&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  /// Reads the next line, without the newline; returns false at the end.
  bool next_line(std::string& line) {
    line.clear();
    for (int letter; (letter = std::fgetc(output_.get())) != EOF;) {
      if (letter == '\n') return true;
      line += static_cast<char>(letter);
    }
    return !line.empty();
  }

  /// Waits for its end; throws unless its status is 0.
  void join() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error(name_ + " failed");
  }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::string name_;
  pid_t process_ = 0;  // 0: already waited for
  std::unique_ptr<std::FILE, Close> output_;
};

/// The main() of a worker; calls `question(options)`.
template <class Question>
int run_worker(int argc, char** argv, Question question) {
  try {
    question(Options(argc, argv, 1));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}

/// Returns a free port of 127.0.0.1.
inline int free_port() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  if (listener < 0) throw_system_error("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool found = ::bind(listener, any, bytes) == 0 && ::getsockname(listener, any, &bytes) == 0;
  ::close(listener);
  if (!found) throw_system_error("bind to a free port of 127.0.0.1");
  return ntohs(address.sin_port);
}

/// Returns "1.13.1", from the output of ucx_info: "# Version 1.13.1", or in later versions "# Library version: 1.14.0".
inline std::string version() {
  Child info({"ucx_info", "-v"}, -1);
  std::string found;
  for (std::string line; info.next_line(line);) {
    const auto start = line.find_first_of("0123456789");
    if (found.empty() && line.find("ersion") != line.npos && start != line.npos) {
      found = line.substr(start, line.find_first_not_of("0123456789.", start) - start);
    }
  }
  info.join();
  return found;
}

/// The result of one run of ucx_perftest.
struct Figures {
  double latency_us;
  double latency_median_us;
  double mebibytes_a_second;
  double messages_a_second;
};

/// Runs it with this number of iterations; `test` has the other arguments, `over` the transports it may use.
inline Figures run_perftest(const std::vector<std::string>& test, double iterations, bool bind,
                            const std::string& over = transports) {
  const auto port = std::to_string(free_port());
  Child server({"ucx_perftest", "-p", port}, bind ? 0 : -1, over);
  std::string line;
  while (line.find("Waiting for connection") == line.npos) {
    if (!server.next_line(line)) throw std::runtime_error("ucx_perftest cannot listen on port " + port);
  }
  std::vector<std::string> arguments{"ucx_perftest", "127.0.0.1", "-p", port, "-f", "-v"};
  arguments.insert(arguments.end(), {"-n", std::to_string(static_cast<long>(iterations))});
  arguments.insert(arguments.end(), {"-w", std::to_string(static_cast<long>(iterations / 10))});
  arguments.insert(arguments.end(), test.begin(), test.end());
  Child client(std::move(arguments), bind ? 1 : -1, over);
  std::string last;
  while (client.next_line(line)) last = line;
  while (server.next_line(line)) {
  }
  client.join();
  server.join();
  // iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr
  std::vector<double> fields;
  std::istringstream all(last);
  for (std::string field; std::getline(all, field, ',');) fields.push_back(std::strtod(field.c_str(), nullptr));
  if (fields.size() != 8 || !(fields[7] > 0)) throw std::runtime_error("ucx_perftest told no rate: '" + last + "'");
  return {fields[3], fields[1], fields[5], fields[7]};
}

}  // namespace tonari::bench::ucx
