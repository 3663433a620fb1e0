// Ranks of one host broadcast and reduce long data, while some of them take the permission to copy from and to their
// memory away from others, or lose their own. Arguments: how (support/permission.hpp), the seed, the rank that does so
// or "all", and when: "between" two collectives, or "meanwhile", while many are under way.
#include "../../support/permission.hpp"
#include "../../support/random.hpp"
#include "../../support/rank.hpp"
#include "message/collectives.hpp"

#include <tonari/tonari.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tonari;
using test::require;
using test::require_ok;
using test::take_permission;

// Composes the maps x -> a x + b: an associative operation that does not commute.
struct Map {
  std::uint32_t a;
  std::uint32_t b;
  bool operator==(const Map&) const = default;
};
constexpr auto then = [](const Map& first, const Map& second) {
  return Map{first.a * second.a, first.b * second.a + second.b};
};
void fold_maps(void* into, const void* from, std::size_t count, const void*) {
  auto* const left = static_cast<Map*>(into);
  const auto* const right = static_cast<const Map*>(from);
  for (std::size_t i = 0; i < count; ++i) left[i] = then(left[i], right[i]);
}

constexpr tonari::detail::Reduction composition{fold_maps, sizeof(Map), nullptr};

Map map_of(std::size_t rank, std::size_t i) {
  return {static_cast<std::uint32_t>(2 * i + 2 * rank + 1), static_cast<std::uint32_t>(7 * i + 13 * rank + 5)};
}
std::vector<Map> maps_of(std::size_t rank, std::size_t count) {
  std::vector<Map> maps(count);
  for (std::size_t i = 0; i < count; ++i) maps[i] = map_of(rank, i);
  return maps;
}

message::Context& context_of(const Communicator& communicator) {
  return *message::Communicators::context(communicator);
}

/// A collective and its data.
class Collective {
 public:
  enum class Kind : std::uint8_t { broadcast, broadcast_with_gaps, all_reduce, all_reduce_in_place };
  static constexpr std::array kinds{Kind::broadcast, Kind::broadcast_with_gaps, Kind::all_reduce,
                                    Kind::all_reduce_in_place};

  Collective(const Communicator& communicator, Kind kind, std::size_t count, std::size_t root)
      : context_(&context_of(communicator)),
        kind_(kind),
        count_(count),
        root_(root),
        own_(maps_of(static_cast<std::size_t>(context_->rank()), count)),
        result_(kind == Kind::all_reduce_in_place ? own_ : std::vector<Map>(count * step())) {
    if (is_broadcast() && context_->rank() == static_cast<int>(root)) {
      for (std::size_t i = 0; i < count; ++i) result_[i * step()] = own_[i];
    }
  }

  void start() {
    request_ = is_broadcast() ? message::start_broadcast(*context_, part(), static_cast<int>(root_))
                              : message::start_all_reduce(*context_, operands(), bytes(), composition);
  }
  void wait() { require_ok(request_.wait().status); }
  void run() {
    require_ok(is_broadcast() ? message::broadcast(*context_, part(), static_cast<int>(root_))
                              : message::all_reduce(*context_, operands(), bytes(), composition));
  }
  void check() const {
    const auto ranks = static_cast<std::size_t>(context_->size());
    for (std::size_t i = 0; i < count_; ++i) {
      Map expected = map_of(is_broadcast() ? root_ : 0, i);
      for (std::size_t rank = 1; !is_broadcast() && rank < ranks; ++rank) expected = then(expected, map_of(rank, i));
      require(result_[i * step()] == expected, "wrong element " + std::to_string(i) + " of " + std::to_string(count_) +
                                                   " of kind " + std::to_string(static_cast<int>(kind_)) +
                                                   " with root " + std::to_string(root_));
    }
    require(own_ == maps_of(static_cast<std::size_t>(context_->rank()), count_), "the operands have changed");
  }

 private:
  [[nodiscard]] bool is_broadcast() const { return kind_ == Kind::broadcast || kind_ == Kind::broadcast_with_gaps; }
  [[nodiscard]] std::size_t step() const { return kind_ == Kind::broadcast_with_gaps ? 2 : 1; }
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(result_)); }
  [[nodiscard]] const std::byte* operands() {
    return std::as_bytes(std::span(kind_ == Kind::all_reduce_in_place ? result_ : own_)).data();
  }
  [[nodiscard]] message::Part part() {
    if (kind_ == Kind::broadcast) return message::Part(bytes());
    return {bytes().data(), count_, sizeof(Map), static_cast<std::ptrdiff_t>(step() * sizeof(Map))};
  }

  message::Context* context_;
  Kind kind_;
  std::size_t count_;
  std::size_t root_;
  std::vector<Map> own_;
  std::vector<Map> result_;
  Request request_;  // ends before the data
};

// Around the longest data on a board, and longer.
constexpr std::array<std::size_t, 4> counts{4097, 8192, 8193, 150'003};

// All collectives with all lengths and roots in random order, the same on all ranks.
std::vector<Collective> some_of_each(const Communicator& communicator, test::Random& random) {
  std::vector<Collective> made;
  const auto ranks = communicator.group().ranks().size();
  for (const auto kind : Collective::kinds) {
    for (const std::size_t count : counts) {
      for (std::size_t root = 0; root < ranks; ++root) made.emplace_back(communicator, kind, count, root);
    }
  }
  std::ranges::shuffle(made, random);
  return made;
}

void run_between(Communicator& world, test::Random& random, bool loses, const std::string& how) {
  std::vector<Communicator> several;  // each meets the refusal with another collective
  for (int i = 0; i < 3; ++i) several.push_back(world.duplicate());
  for (const Communicator& each : several) Collective(each, Collective::Kind::all_reduce, 150'003, 0).run();
  if (loses) take_permission(how);
  require_ok(world.barrier());
  for (const Communicator& each : several) {
    for (Collective& collective : some_of_each(each, random)) {
      if (test::chance(random, 50)) {
        collective.run();
      } else {
        collective.start();
        collective.wait();
      }
      collective.check();
    }
    const auto& context = context_of(each);
    require(!message::shares_data(context) || context.has_seen_denial(), "no copy was refused");
  }
}

void run_meanwhile(Communicator& world, test::Random& random, bool loses, const std::string& how) {
  // The first collective is so long that the permission often goes in the middle of it.
  const auto a_long_one = [&world] { return Collective(world, Collective::Kind::all_reduce_in_place, 1'000'000, 0); };
  std::chrono::nanoseconds delay{};
  for (int turn = 0; turn < 2; ++turn) {
    auto each = a_long_one();
    require_ok(world.barrier());
    const auto began = std::chrono::steady_clock::now();
    each.run();
    delay = std::chrono::steady_clock::now() - began;
  }
  delay = delay * test::between(random, 0, 100) / 100;
  std::vector<Collective> collectives = some_of_each(world, random);
  collectives.insert(collectives.begin(), a_long_one());
  require_ok(world.barrier());
  std::jthread later([&, begins = std::chrono::steady_clock::now()] {
    while (std::chrono::steady_clock::now() - begins < delay) std::this_thread::yield();
    if (loses) take_permission(how);
  });
  std::size_t first = 0;
  while (first < collectives.size()) {
    const std::size_t end = std::min(collectives.size(), first + test::between(random, 1, 12));
    for (std::size_t i = first; i < end; ++i) collectives[i].start();
    test::Random own(random() + static_cast<unsigned>(world.rank().value()));
    std::vector<std::size_t> order;  // each rank waits in another order
    for (; first < end; ++first) order.push_back(first);
    std::ranges::shuffle(order, own);
    for (const std::size_t i : order) {
      collectives[i].wait();
      collectives[i].check();
    }
  }
}

void act(Job& job, const std::vector<std::string>& arguments) {
  Communicator world(job);
  const std::string& how = arguments.at(0);
  test::Random random(std::stoull(arguments.at(1)));  // the same on all ranks
  const bool loses = arguments.at(2) == "all" || arguments.at(2) == std::to_string(world.rank().value());
  if (arguments.at(3) == "between") return run_between(world, random, loses, how);
  run_meanwhile(world, random, loses, how);
}

}  // namespace

int main(int argc, char** argv) { return test::run_rank(argc, argv, act); }
