#include "job/pmix/client.hpp"

#include <tonari/status.hpp>

// Replaces the PMIx client in a tonari that was built without PMIx's headers.
namespace tonari::job::pmix {

std::string why_absent() { return "tonari was built without PMIx; install libpmix-dev and build it again"; }

Client::Client() : handler_(0) {
  throw SetupError("a launcher with PMIx started this process, which cannot join its job: " + why_absent() +
                   ", start it with `tonari run`, or unset PMIX_NAMESPACE to run alone");
}
Client::~Client() = default;
std::vector<std::vector<std::byte>> Client::exchange(const char* /*key*/, std::span<const std::byte> /*bytes*/,
                                                     std::chrono::seconds /*limit*/) {
  return {};
}
void Client::abort(int /*exit_status*/) noexcept {}
bool Client::connected() noexcept { return false; }

}  // namespace tonari::job::pmix
