#include "message/operation.hpp"

#include "base/spare_memory.hpp"
#include "job/group.hpp"
#include "message/context.hpp"
#include "message/layout_cursor.hpp"
#include "message/schedule.hpp"
#include "message/unexpected.hpp"

namespace tonari::message {

void* Operation::operator new(std::size_t) { return SpareMemory<Operation>::take(); }
void Operation::operator delete(void* memory) noexcept { SpareMemory<Operation>::give(memory); }

void Operation::Delete::operator()(Schedule* owned) const noexcept {
  if (!owned->is_persistent()) delete owned;
}
void Operation::Delete::operator()(LayoutCursor* owned) const noexcept { delete owned; }

Result<Envelope> Operation::result() const noexcept {
  if (!progress.has_envelope) return {progress.status, {}};
  const int source = job::position_in(call.context->peers(), static_cast<int>(head.source));
  return {progress.status, {Rank{source}, Tag{head.tag}, message_bytes(head)}};
}

bool Operation::schedule_ready() const noexcept { return schedule->ready(); }

}  // namespace tonari::message
