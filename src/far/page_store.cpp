#include "far/page_store.hpp"

namespace tonari::far {

// Compressed pages may be anywhere in the lent memory; uncompressed pages have the same place as in the arena.
PageStore::PageStore(Servers& servers, const Order& order) {
  const std::uint64_t places = places_bytes(order);
  if (has_file(order.store)) source_ = &file_.emplace(order.directory.data(), places);
  if (far::has_servers(order.store)) {
    source_ = &at_servers_.emplace(servers, compresses(order.store) ? servers.lent_bytes() : places);
  }
  if (compresses(order.store)) source_ = &packed_.emplace(*at_servers_, places);
  if (packed_ && file_) source_ = &tiered_.emplace(servers, *packed_, *file_, places);
}

PageStore::~PageStore() {
  tiered_.reset();
  packed_.reset();
  if (at_servers_) at_servers_->give_all_back();
}

}  // namespace tonari::far
