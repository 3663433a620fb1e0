#include "far/preload/requests.hpp"

#include "far/preload/program.hpp"

namespace tonari::far {

namespace {

Request& take_request() noexcept {
  static constinit std::atomic<std::uint32_t> next{0};
  for (std::uint32_t tries = 1;; ++tries) {
    // Relaxed: the counter only spreads the threads.
    const std::uint32_t index = next.fetch_add(1, std::memory_order_relaxed) % Channel::requests_max;
    Request& request = program.channel->requests[index];
    std::uint32_t seen = Request::idle;
    // Acquire: the previous user of the request has read its reply. Pairs with (2).
    if (request.state.compare_exchange_strong(seen, Request::taken, std::memory_order_acquire)) return request;
    if (tries % Channel::requests_max != 0) continue;
    pause_shortly();  // all are taken, each for about this long
  }
}

// Sends a request, waits for the reply, and calls read(request).
template <class Read>
void ask(Request::What what, Range range, Read read) noexcept {
  // A signal handler may send a request, too. It must find a free one, so no thread may hold one while its handler
  // runs.
  const WithoutSignals until_answered;
  Request& request = take_request();
  request.what = what;
  request.start = range.start;
  request.bytes = range.bytes;

  // (1) Publishes the request: pairs with the acquire in Client::serve_requests().
  request.state.store(Request::asked, std::memory_order_release);
  std::atomic<std::uint32_t>& doorbell = program.channel->keeper_doorbell;
  // Release: a keeper that sees the new count also sees the request.
  doorbell.fetch_add(1, std::memory_order_release);
  wake(doorbell, 1, With::keeper);

  for (;;) {
    const std::uint32_t state = request.state.load(std::memory_order_acquire);  // acquire: the reply is complete
    if (state == Request::answered) break;
    wait_on(request.state, state, With::keeper);
  }
  read(request);
  request.state.store(Request::idle, std::memory_order_release);  // (2) the reply was read: pairs with take_request()
}

}  // namespace

int ask(Request::What what, Range range) noexcept {
  int error = 0;
  ask(what, range, [&](const Request& answer) { error = answer.error; });
  return error;
}

tonari_far_statistics ask_for_statistics() noexcept {
  tonari_far_statistics found{};
  ask(Request::What::statistics, {}, [&](const Request& answer) { found = answer.statistics; });
  return found;
}

}  // namespace tonari::far
