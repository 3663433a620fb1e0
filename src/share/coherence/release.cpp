#include "share/coherence/release.hpp"

#include "share/array/array.hpp"
#include "share/shared_memory.hpp"

#include <algorithm>
#include <cstring>

namespace tonari::share {

namespace {

constexpr std::size_t changes_bytes = 1 << 20;  // of diffs, kept until their homes have them
constexpr std::size_t block_changes_bytes = pages_per_block * change_bytes_max;
constexpr std::uint64_t patience_ns = 100'000;  // for ranks that will handle the message by themselves

}  // namespace

Release::Release(SharedMemory& shared_memory)
    : shared_memory_(shared_memory), changes_(changes_bytes + block_changes_bytes) {}

void Release::add_change(Array& array, int home, std::uint64_t page, std::size_t bytes) {
  sent_.push_back({&array, home, page, used_, bytes});
  used_ += bytes;
}

void Release::add_own(Array& array, const Entry& entry, std::size_t bytes) {
  copied_.push_back({&array, shared_memory_.rank(), entry, used_, bytes});
  used_ += bytes;
}

void Release::make_room() {
  send_changes();
  if (used_ >= changes_bytes) tell();
}

// Completes everything that was added so far: the diffs are at home, and the ranks with copies were told.
void Release::tell() {
  finish_all();
  for (const Suspended& each : suspended_) each.array->end_suspension(each.first, each.pages);
  suspended_.clear();
  if (!copied_.empty()) {
    tell_copies();
    tell_homes();
  }
  used_ = 0;
  sent_.clear();
  sent_until_ = 0;
  copied_.clear();
}

// Sends the diffs that were not sent yet, all diffs of one array for one home together.
void Release::send_changes() {
  const auto key = [](const Sent& each) { return std::pair(each.array->number(), each.home); };
  std::stable_sort(sent_.begin() + static_cast<std::ptrdiff_t>(sent_until_), sent_.end(),
                   [&](const Sent& one, const Sent& other) { return key(one) < key(other); });
  while (sent_until_ < sent_.size()) {
    const std::size_t first = sent_until_;
    std::size_t bytes = 0;
    while (sent_until_ < sent_.size() && key(sent_[sent_until_]) == key(sent_[first]) &&
           bytes + sent_[sent_until_].bytes <= fabric::bulk_tail_bytes_max && sent_until_ - first < entries_max) {
      bytes += sent_[sent_until_++].bytes;
    }
    send_to(sent_[first].home, first, sent_until_ - first);
  }
}

void Release::send_to(int home, std::size_t first, std::size_t count) {
  Message& message = next_message();
  message.first = first;
  message.count = count;
  message.ranks = 0;
  std::size_t bytes = 0;
  for (std::size_t i = first; i < first + count; ++i) bytes += sent_[i].bytes;
  fabric::Requests& requests = shared_memory_.requests();
  const fabric::BulkPlace block = requests.allocate(bytes, home);
  std::byte* to = requests.at(block);
  for (std::size_t i = first; i < first + count; ++i) {
    std::memcpy(to, changes_.data() + sent_[i].at, sent_[i].bytes);
    to += sent_[i].bytes;
  }
  Words words;
  words.tail_bytes = bytes;
  words.tail_place = block.value;
  words.object = sent_[first].array->number();
  words.count = static_cast<std::uint32_t>(count);
  requests.ask(message.pending, home, head_of(Kind::share_changes, shared_memory_.rank(), words),
               fabric::Waiter::program, wakeup_);
}

Release::Message& Release::next_message() {
  Message& message = messages_.next([this](Message& oldest) { finish(oldest); });
  messages_.begin();
  return message;
}

// A rank that has not replied after a while computes for longer than this rank. It is interrupted then: handling the
// message takes time that it would otherwise spend after this rank has begun to wait.
void Release::await(const PendingRequest& pending) {
  fabric::Requests& requests = shared_memory_.requests();
  if (wakeup_ == fabric::Wakeup::now || pending.is_done()) return requests.wait(pending);
  requests.wait_patiently(pending, patience_ns, [&] {
    wakeup_ = fabric::Wakeup::now;
    requests.wake_peer(pending);
    messages_.for_each([&](const Message& each) { requests.wake_peer(each.pending); });
  });
}

void Release::finish(Message& message) {
  await(message.pending);
  if (message.pending.status() != Status::ok) {
    status_ = message.pending.status();
    missed_ |= message.ranks;
  } else if (message.pending.kind() == Kind::share_copies) {
    take_reply(message);
  } else if (message.pending.kind() == Kind::share_gone) {
    status_ = Status::peer_gone;
  } else if (message.pending.kind() == Kind::share_noted) {
    missed_ |= message.pending.words().first & message.ranks;
  }
}

// A home's entries come in the order of the changes. Entries for other pages are malformed and skipped.
void Release::take_reply(Message& message) {
  const int home = message.pending.peer();
  const std::size_t end = message.first + message.count;
  std::size_t next = message.first;
  for_each_in<Entry>(shared_memory_.requests().tail_of(message.pending), [&](Entry entry) {
    while (next != end && sent_[next].page != entry.page) ++next;
    if (next == end) return;
    const Sent change = sent_[next++];
    Array& array = *change.array;
    const auto add = [&](int at_home) {
      const bool updates = array.updates();
      copied_.push_back({&array, at_home, entry, updates ? change.at : 0, updates ? change.bytes : 0});
    };
    switch (entry.said) {
      case Said::copies: add(home); break;
      case Said::yours:
        array.adopt(entry);
        add(shared_memory_.rank());
        break;
      case Said::moved: resend(change, entry.ranks); break;
    }
  });
  shared_memory_.requests().give_back_tail(message.pending);
}

// The page's home has moved: sends the change to the new home. If the reply names this rank, which does not know yet
// that it is the home, asks the same rank once more.
void Release::resend(Sent change, std::uint64_t home) {
  if (home >= static_cast<std::uint64_t>(shared_memory_.size())) return;  // malformed: drop it
  if (static_cast<int>(home) != shared_memory_.rank()) change.home = static_cast<int>(home);
  sent_.push_back(change);
}

void Release::finish_all() {
  while (!messages_.is_empty() || sent_until_ != sent_.size()) {
    send_changes();  // changes of pages whose home has moved
    messages_.end_all([this](Message& each) { finish(each); });
  }
}

Status Release::end() noexcept {
  tell();
  return std::exchange(status_, Status::ok);
}

}  // namespace tonari::share
