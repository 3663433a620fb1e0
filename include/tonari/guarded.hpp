#pragma once

#include <tonari/job.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace tonari {

/// The fate of readers' copies when a rank writes.
enum class OnWrite : std::uint8_t {
  invalidate,  ///< A rank that reads again asks for the newest data.
  update,      ///< When the writer unlocks, the newest data is sent to all ranks that had a copy.
};

/// The rank that moves the data: (a) and (b) are the two kinds of update of the Fagus paper (Araki et al., 5.2). With
/// RDMA, data of TONARI_PUT_BYTES or more is put directly into place; otherwise it travels in messages.
enum class Mover : std::uint8_t {
  owner_puts,  ///< (a) The owner, unasked: ownership, permission to read and updates bring the data along.
  asker_asks,  ///< (b) Ownership and permission to read travel alone. A rank that then needs the data asks for it, and
               ///< the rank that has it puts it.
  asker_gets,  ///< (b) The same, but the rank that needs the data reads it from the other's memory, by RDMA if
               ///< possible.
};

/// The same in all ranks.
struct GuardedOptions {
  OnWrite on_write = OnWrite::invalidate;
  Mover mover = Mover::owner_puts;
  JobRank home{};  ///< The rank that owns the data first, and that requests go through.
};

namespace share {
class Guarded;
}

/// Bytes bound to a synchronisation variable: the part that guarded<T> and guarded_span<T> share.
/// docs/modules/guarded.md.
///
/// Any number of threads of any ranks read together, or one thread writes. The writer owns the newest data. Ownership
/// stays with its rank until another rank wants to write; then it moves, with the data, in one message. Locking again
/// what this rank locked last therefore costs no message. Locks are granted in the order of the requests, except that
/// neighbouring readers enter together.
///
/// Locking:  by write(), read(), try_write() and try_read() of the derived classes alone, which return a GuardedAccess.
///           Not a BasicLockable: std::lock_guard would ignore that locking can fail, and does not compile. A program
///           that locks several variables locks them in the same order on all ranks.
/// Hosts:    on one host all ranks map the same bytes, and on_write and mover change nothing.
/// Place:    the data start at a multiple of 64 bytes, and stay there while this object lives.
/// Deaths:   with Job::on_death, calls that need a dead rank return peer_gone from then on: the home died, or a rank
///           died that had the newest data or waited to write. On one host the next lock returns holder_died instead.
///           After a death no more guarded data can be created.
/// Freeing:  each rank destroys its own object when it no longer needs it, without waiting for other ranks.
/// Misuse:   builds with assertions end the program, with a line that names the mistake: data used without the lock,
///           freeing data while it is locked, using a moved-from object.
/// Threads:  any, except during construction and destruction. A lock belongs to the rank: any of its threads may
///           release it. A thread must not lock data that it has locked already, not even to read.
class GuardedBytes {
 public:
  GuardedBytes(GuardedBytes&&) noexcept;
  GuardedBytes& operator=(GuardedBytes&&) noexcept;
  ~GuardedBytes();

  // Hints: explicit control of the copies, as in cc-COMA. They change no result. On one host they do nothing.

  /// Starts to get a copy, so that a read() soon need not wait.
  void prefetch() noexcept;
  /// On the owner, or while holding the write lock: sends the data to every rank whose copy its writes invalidated; at
  /// unlock if the lock is held, otherwise now. On any other rank: gets the newest copy before it returns, unless this
  /// rank has it. Returns ok; peer_gone.
  Status update_now() noexcept;
  /// This rank will not read for a while: writers need not notify it any more. Data that it owns or has locked stays.
  void drop() noexcept;

 protected:
  GuardedBytes(Job& job, std::size_t count, std::size_t element_bytes, const GuardedOptions& options,
               std::span<const std::byte> initial);

 private:
  template <class T>
  friend class GuardedAccess;
  Status lock() noexcept;
  Status try_lock() noexcept;
  Status unlock() noexcept;
  Status lock_shared() noexcept;
  Status try_lock_shared() noexcept;
  Status unlock_shared() noexcept;
  [[nodiscard]] std::byte* written() const noexcept;
  [[nodiscard]] const std::byte* read_only() const noexcept;

  std::unique_ptr<share::Guarded> guarded_;
};

/// Holds a lock of guarded data while it lives, and gives access to the data: to write, or for a const T to read. Test
/// it before touching the data: it holds nothing if locking failed. Only an access that has a name can be tested:
/// `if (data.write())` would unlock before the block begins. Move-only. Must not outlive the data. Threads: one at a
/// time.
template <class T>
class [[nodiscard]] GuardedAccess {
 public:
  static constexpr bool writes = !std::is_const_v<T>;

  GuardedAccess(GuardedAccess&& other) noexcept
      : guarded_(other.guarded_),
        data_(std::exchange(other.data_, nullptr)),
        count_(other.count_),
        status_(other.status_) {}
  GuardedAccess& operator=(GuardedAccess&&) = delete;
  ~GuardedAccess() { (void)release(); }

  /// How locking went:
  ///   ok           locked.
  ///   holder_died  locked, but the last writer died: the data may be half written. On one host only.
  ///   peer_gone    not locked: the home died, or a rank died that had the newest data.
  ///   again        not locked, after try_write() and try_read() only: it would have had to wait.
  [[nodiscard]] Status status() const& noexcept { return status_; }
  Status status() const&& = delete;  // without a name it is released at once: auto access = data.write();
  /// True while it holds the lock: locking returned ok or holder_died, and nothing has released it.
  explicit operator bool() const& noexcept { return data_ != nullptr; }
  explicit operator bool() const&& = delete;  // without a name it is released at once: auto access = data.write();
  /// Unlocks before the end of its life. Returns:
  ///   ok         also if it holds nothing.
  ///   peer_gone  a rank died: what was written is lost.
  Status release() noexcept {
    if (data_ == nullptr) return Status::ok;
    data_ = nullptr;
    if constexpr (writes) {
      return guarded_->unlock();
    } else {
      return guarded_->unlock_shared();
    }
  }

  T& operator*() const noexcept { return *data(); }
  T* operator->() const noexcept { return data(); }
  T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] T* begin() const noexcept { return data(); }
  [[nodiscard]] T* end() const noexcept { return data() + count_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data(), count_}; }
  [[nodiscard]] T* data() const noexcept {
    if (data_ == nullptr) (void)locked(*guarded_);  // names the mistake
    return data_;
  }

 private:
  template <class>
  friend class guarded;
  template <class>
  friend class guarded_span;

  GuardedAccess(GuardedBytes& guarded, std::size_t count, Status status) noexcept
      : guarded_(&guarded),
        data_(status == Status::ok || status == Status::holder_died ? locked(guarded) : nullptr),
        count_(count),
        status_(status) {}
  static T* locked(const GuardedBytes& guarded) noexcept {
    if constexpr (writes) {
      return reinterpret_cast<T*>(guarded.written());
    } else {
      return reinterpret_cast<T*>(guarded.read_only());
    }
  }
  static GuardedAccess lock(GuardedBytes& guarded, std::size_t count) noexcept {
    if constexpr (writes) {
      return {guarded, count, guarded.lock()};
    } else {
      return {guarded, count, guarded.lock_shared()};
    }
  }
  static GuardedAccess try_lock(GuardedBytes& guarded, std::size_t count) noexcept {
    if constexpr (writes) {
      return {guarded, count, guarded.try_lock()};
    } else {
      return {guarded, count, guarded.try_lock_shared()};
    }
  }

  GuardedBytes* guarded_;
  T* data_;  // null: not held
  std::size_t count_;
  Status status_;
};

/// A value that all ranks share, and that can be touched only under its lock.
///
///   guarded<Totals> totals(job, Totals{});
///   if (const auto access = totals.write()) access->sum += 1;
///   if (const auto access = totals.read()) std::printf("%ld\n", access->sum);
template <class T>
class guarded : public GuardedBytes {
  static_assert(std::is_trivially_copyable_v<T>, "guarded data moves as bytes: T must be trivially copyable");

 public:
  /// Collective over the job: all ranks create their guarded data in the same order, one thread of each at a time. The
  /// home's `initial` is the one that counts. Throws SetupError in all ranks if sizes or options differ or are wrong,
  /// if memory is short, or if a rank died before.
  explicit guarded(Job& job, const T& initial = T{}, const GuardedOptions& options = {})
      : GuardedBytes(job, 1, sizeof(T), options, std::as_bytes(std::span(&initial, 1))) {}

  /// Waits for the lock to write. Statuses: see GuardedAccess::status().
  GuardedAccess<T> write() noexcept { return GuardedAccess<T>::lock(*this, 1); }
  /// Waits for the lock to read.
  GuardedAccess<const T> read() noexcept { return GuardedAccess<const T>::lock(*this, 1); }
  /// The same as write() and read(), but with status again where they would wait for another thread to unlock. Replies
  /// of other ranks are waited for, for a moment. A failed try has asked for ownership, so that a later one succeeds.
  GuardedAccess<T> try_write() noexcept { return GuardedAccess<T>::try_lock(*this, 1); }
  GuardedAccess<const T> try_read() noexcept { return GuardedAccess<const T>::try_lock(*this, 1); }
};

/// The same for `count` elements, which are zero at first. `count` is not 0.
template <class T>
class guarded_span : public GuardedBytes {
  static_assert(std::is_trivially_copyable_v<T>, "guarded data moves as bytes: T must be trivially copyable");

 public:
  guarded_span(Job& job, std::size_t count, const GuardedOptions& options = {})
      : GuardedBytes(job, count, sizeof(T), options, {}), count_(count) {}

  GuardedAccess<T> write() noexcept { return GuardedAccess<T>::lock(*this, count_); }
  GuardedAccess<const T> read() noexcept { return GuardedAccess<const T>::lock(*this, count_); }
  GuardedAccess<T> try_write() noexcept { return GuardedAccess<T>::try_lock(*this, count_); }
  GuardedAccess<const T> try_read() noexcept { return GuardedAccess<const T>::try_lock(*this, count_); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  std::size_t count_;
};

}  // namespace tonari
