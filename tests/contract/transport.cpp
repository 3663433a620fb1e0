#include "transport_suite.hpp"
#include "ucx_world.hpp"
#include "worlds.hpp"

// Runs the contract on every transport between ranks of this process. programs/contract.cpp runs it between hosts.
namespace tonari::fabric {
namespace {

static_assert(Transport<Shm<Neighbours>> && Transport<SlowWire> && Transport<Ordered<ShufflingWire>> &&
              Transport<Ordered<ucx::Wire>>);

using Worlds = testing::Types<ShmWorld<1024>, ShmWorld<64>, SlowWorld, OrderedWorld, UcxWorld>;
struct WorldNames {
  template <class World>
  static std::string GetName(int) {
    if constexpr (std::is_same_v<World, ShmWorld<1024>>) return "Shm";
    if constexpr (std::is_same_v<World, ShmWorld<64>>) return "ShmSmallest";
    if constexpr (std::is_same_v<World, SlowWorld>) return "Slow";
    if constexpr (std::is_same_v<World, OrderedWorld>) return "OrderedOverShuffling";
    if constexpr (std::is_same_v<World, UcxWorld>) return "OrderedOverUcx";
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Here, TransportContract, Worlds, WorldNames);

}  // namespace
}  // namespace tonari::fabric
