// A rank that does what its arguments say, one after the other, so that one program serves all tests of `tonari run`.
//
//   join            makes the tonari::Job and says "rank R of N joined"
//   leave           destroys it and says "left"
//   say TEXT        prints a line, with {rank} and {pid} filled in
//   print TEXT      the same, and leaves it in the buffer of stdout
//   barrier         waits for all ranks of the job
//   compute         computes without end, after saying "computing"
//   error TEXT      prints it to standard error
//   read            reads a line of standard input and says "read LINE", or "no input" at its end
//   wait            sleeps until a signal ends it, after saying "waiting"
//   catch SIGNAL    from now on says "caught N" for a signal, and goes on
//   exit STATUS     calls exit
//   quick STATUS    calls _exit
//   return STATUS   returns from main
//   kill SIGNAL     kills itself
//   abort CODE      aborts the job
//   elsewhere CODE  the same from another thread, and waits
//   throw           throws through the Job and catches it outside; goes on
//   live            sets a death handler that says "rank R died: signal S status T"
//   hear            waits until the handler has been called
//   fork            forks a child that destroys the Job, and exits; says "child ended with S"
//   again           makes a second Job and says how that ends
//   only RANK       skips the next word, and its argument, unless this is RANK
//   but RANK        skips them if it is
//   chatter COUNT   prints COUNT numbered lines of varying length
#include <tonari/job.hpp>
#include <tonari/message.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Words = std::vector<std::string>;

struct Returned {
  int status;
};

std::atomic<int> heard{0};

class Actor {
 public:
  explicit Actor(Words words) : words_(std::move(words)) {}

  int play() {
    try {
      while (next_ < words_.size()) act(take());
    } catch (const Returned& returned) {
      return returned.status;
    }
    return 0;
  }

 private:
  static constexpr int no_rank = -1;

  std::string take() { return words_.at(next_++); }
  int number() { return std::stoi(take()); }

  static int own_rank() {
    const char* const text = std::getenv("TONARI_RANK");
    return text == nullptr ? no_rank : std::atoi(text);
  }

  static void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }

  static std::string fill(std::string text) {
    const auto put = [&](const std::string& name, const std::string& value) {
      for (auto at = text.find(name); at != text.npos; at = text.find(name)) text.replace(at, name.size(), value);
    };
    put("{rank}", std::to_string(own_rank()));
    put("{pid}", std::to_string(::getpid()));
    return text;
  }

  void skip_if(bool skipped) {
    static const std::set<std::string> with_argument{"say",  "error", "catch", "exit",    "quick", "return",   "kill",
                                                     "only", "but",   "abort", "chatter", "print", "elsewhere"};
    if (skipped && with_argument.contains(take())) ++next_;
  }

  void act(const std::string& word) {
    if (word == "join") return join();
    if (word == "leave") return leave();
    if (word == "say") return say(fill(take()));
    if (word == "error") return static_cast<void>(std::fprintf(stderr, "%s\n", fill(take()).c_str()));
    if (word == "read") return read();
    if (word == "wait") return wait();
    if (word == "catch") return static_cast<void>(std::signal(number(), tell_signal));
    if (word == "exit") std::exit(number());
    if (word == "quick") ::_exit(number());
    if (word == "return") throw Returned{number()};
    if (word == "kill") return static_cast<void>(::kill(::getpid(), number()));
    if (word == "abort") job_->abort(number());
    if (word == "elsewhere") return abort_elsewhere(number());
    if (word == "print") return static_cast<void>(std::printf("%s\n", fill(take()).c_str()));
    if (word == "barrier") return static_cast<void>(tonari::Communicator(*job_).barrier());
    if (word == "compute") return compute();
    if (word == "throw") return throw_through_job();
    if (word == "live") return live();
    if (word == "hear") return heard.wait(0);
    if (word == "fork") return fork_child();
    if (word == "again") return join_again();
    if (word == "only") return skip_if(number() != own_rank());
    if (word == "but") return skip_if(number() == own_rank());
    if (word == "chatter") return chatter(number());
    throw std::invalid_argument("job_actor does not know the word " + word);
  }

  void join() {
    job_ = std::make_unique<tonari::Job>();
    say("rank " + std::to_string(job_->rank().value()) + " of " + std::to_string(job_->size()) + " joined");
  }

  void leave() {
    job_.reset();
    say("left");
  }

  static void read() {
    std::string line;
    say(std::getline(std::cin, line) ? "read " + line : "no input");
  }

  static void wait() {
    say("waiting");
    for (;;) ::pause();
  }

  static void compute() {
    say("computing");
    for (std::atomic<unsigned> turn{0};; ++turn) {
    }
  }

  [[noreturn]] void abort_elsewhere(int code) {
    std::thread([this, code] { job_->abort(code); }).join();
    std::abort();  // not reached
  }

  static void tell_signal(int number) {
    const std::string text = "caught " + std::to_string(number) + "\n";
    static_cast<void>(!::write(STDOUT_FILENO, text.data(), text.size()));
  }

  void throw_through_job() {
    try {
      tonari::Job job;
      say("rank " + to_string(job.rank()) + " throws");
      throw std::runtime_error("as asked");
    } catch (const std::runtime_error& error) {
      say(std::string("caught ") + error.what());
    }
  }

  void live() {
    job_->on_death([](const tonari::Death& death) {
      say("rank " + std::to_string(death.rank.value()) + " died: signal " + std::to_string(death.signal) + " status " +
          std::to_string(death.exit_status));
      heard = 1;
      heard.notify_all();
    });
  }

  void fork_child() {
    const pid_t child = ::fork();
    if (child == 0) {
      job_.reset();
      std::exit(7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    say("child ended with " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status)));
  }

  static void join_again() {
    try {
      const tonari::Job second;
      say("joined again");
    } catch (const tonari::SetupError& error) {
      say(error.what());
    }
  }

  static void chatter(int lines) {
    for (int i = 0; i < lines; ++i) {
      const std::string filling(static_cast<std::size_t>(i * 37 % 500), static_cast<char>('a' + own_rank() % 26));
      std::printf("%d:%d:%s\n", own_rank(), i, filling.c_str());
      if (i % 7 == 0) std::fflush(stdout);
    }
  }

  Words words_;
  std::size_t next_ = 0;
  std::unique_ptr<tonari::Job> job_;
};

}  // namespace

int main(int count, char** arguments) { return Actor{Words(arguments + 1, arguments + count)}.play(); }
