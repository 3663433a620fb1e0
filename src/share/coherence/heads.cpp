#include "share/coherence/heads.hpp"

namespace tonari::share {

bool PendingRequest::accepts(fabric::HeadKind asked_for, const fabric::Head& reply) const noexcept {
  const auto kind = reply.kind.to<Kind>();
  switch (asked_for.to<Kind>()) {
    case Kind::share_fetch: return kind == Kind::share_pages || kind == Kind::share_moved || kind == Kind::share_gone;
    case Kind::share_changes:
      return kind == Kind::share_taken || kind == Kind::share_copies || kind == Kind::share_gone;
    case Kind::share_await: return kind == Kind::share_reached;
    default: return kind == Kind::share_noted;
  }
}

}  // namespace tonari::share
