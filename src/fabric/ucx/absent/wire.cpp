#include "fabric/ucx/wire.hpp"

#include <tonari/status.hpp>

// Stands for the network if tonari is built without UCX's headers.
namespace tonari::fabric::ucx {

class Worker {};
struct Library {};

namespace {

constexpr Library none;

}  // namespace

Wire::Wire(const Settings& /*settings*/) : ucx_(none), most_{0, 0}, tail_sent_(nullptr), owner_(nullptr), process_(0) {
  throw SetupError("no network: tonari was built without UCX; install libucx-dev 1.13 or later and build it again");
}
Wire::~Wire() = default;
void Wire::introduce(int /*peer*/, std::vector<std::byte> /*address*/) {}
Status Wire::send(int /*peer*/, const Head& /*head*/, Lane /*lane*/, const Outgoing& /*tail*/) noexcept {
  return Status::peer_gone;
}
void Wire::give_back(std::uint64_t /*place*/) noexcept {}
std::size_t Wire::poll(const Sink& /*sink*/) noexcept { return 0; }
bool Wire::arm() noexcept { return true; }
void Wire::forget(int /*peer*/) noexcept {}
Exposed Wire::expose(std::span<std::byte> /*memory*/) noexcept { return {}; }
void Wire::withdraw(const Exposed& /*exposed*/) noexcept {}
RemoteKey* Wire::open_key(int /*peer*/, std::span<const std::byte> /*key*/) noexcept { return nullptr; }
void Wire::close_key(RemoteKey* /*key*/) noexcept {}
void Wire::put(int /*peer*/, RemoteKey* /*key*/, std::uint64_t /*there*/, std::span<const std::byte> /*from*/,
               Landing& /*landing*/, ucp_mem* /*exposed*/) noexcept {}
void Wire::get(int /*peer*/, RemoteKey* /*key*/, std::uint64_t /*there*/, std::span<std::byte> /*to*/,
               Landing& /*landing*/) noexcept {}
void Wire::flush(int /*peer*/, Landing& /*landing*/) noexcept {}
std::string_view Wire::reason(int /*peer*/) const noexcept { return {}; }
bool Wire::was_reached(int /*peer*/) const noexcept { return false; }

}  // namespace tonari::fabric::ucx
