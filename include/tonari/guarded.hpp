#pragma once

#include <tonari/job.hpp>
#include <tonari/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace tonari {

/// What becomes of readers' copies when somebody writes.
enum class OnWrite : std::uint8_t {
  invalidate,  ///< Whoever reads again asks for the newest data.
  update,      ///< The newest data are sent to all who had a copy, when the writer unlocks.
};

/// Who moves the data: the two kinds of update of the Fagus paper (Araki et al., 5.2). What is put goes straight into
/// place where the network is RDMA, from TONARI_PUT_BYTES on; else in messages.
enum class Mover : std::uint8_t {
  owner_puts,  ///< (a) The owner, unasked: ownership, leave to read and updates bring the data along.
  asker_asks,  ///< (b) Ownership and leave to read come alone; who then needs the data asks, and their holder puts
               ///< them.
  asker_gets,  ///< (b) The same, but who needs the data reads them from their holder's memory: by RDMA where there is.
};

/// The same in all ranks.
struct GuardedOptions {
  OnWrite on_write = OnWrite::invalidate;
  Mover mover = Mover::owner_puts;
  int home = 0;  ///< The rank that owns it first, and that requests go through.
};

namespace share {
class Guarded;
}

/// Bytes bound to a synchronisation variable: what guarded<T> and guarded_span<T> have in common. docs/guarded.md.
///
/// Any number of threads of any ranks read together, or one writes. Whoever writes owns the newest data; ownership
/// stays where it is until another rank wants to write, and then moves with the data in one message. So locking again
/// what this rank locked last costs no message. Fair: in the order of asking, but that readers side by side enter
/// together.
///
/// Hosts:   on one host all ranks map the same bytes, and the options change nothing.
/// Deaths:  with Job::on_death, calls that need a dead rank answer peer_gone, for ever: its home died; or a rank died
///          that had the newest data or stood in the queue to write. holder_died as with Window::lock, on one host. No
///          more can be made.
/// Freeing: by each rank when it needs it no more, without waiting for others.
/// Misuse:  an unlock of what is not locked, data looked at without the lock, freeing what is locked, and calls on what
///          was moved elsewhere end the program with a line that names it where tonari was built with assertions; else
///          unlock of what is not locked answers invalid.
/// Threads: any, but for construction and destruction. A lock belongs to the rank: any of its threads may unlock. No
///          thread may lock what it has locked already, not even to read.
class GuardedBytes {
 public:
  GuardedBytes(GuardedBytes&&) noexcept;
  GuardedBytes& operator=(GuardedBytes&&) noexcept;
  ~GuardedBytes();

  /// To write. Answers ok; holder_died: locked, but perhaps half written; peer_gone. As a std::mutex, and like one to
  /// be unlocked only if it was locked.
  Status lock() noexcept;
  /// False where it would have to wait; for other ranks' answers it waits a moment, not for them to unlock. Ownership
  /// has been asked for then, and a later call will find it here.
  bool try_lock() noexcept;
  /// Answers ok; invalid: not locked; peer_gone: what was written is lost.
  Status unlock() noexcept;
  /// To read, as a std::shared_mutex.
  Status lock_shared() noexcept;
  bool try_lock_shared() noexcept;
  Status unlock_shared() noexcept;

  // Hints: explicit control of the copies, as in cc-COMA. They change no result. On one host they do nothing.

  /// Begins to get a copy, so that a lock_shared() soon will not have to wait.
  void prefetch() noexcept;
  /// At the owner, or a writer: the ranks whose copies its writes have ended are sent the data, now or when it unlocks.
  /// At any other rank: gets the newest copy before it returns, if it has not got it. Answers ok or peer_gone.
  Status update_now() noexcept;
  /// This rank will not read for a while: writers need not tell it any more. It keeps what it owns or has locked.
  void drop() noexcept;

 protected:
  GuardedBytes(Job& job, std::size_t count, std::size_t element_bytes, const GuardedOptions& options,
               std::span<const std::byte> initial);

  /// Locked to write, or at least to read.
  [[nodiscard]] std::byte* written() const noexcept;
  [[nodiscard]] const std::byte* read_only() const noexcept;

 private:
  template <class T>
  friend class GuardedAccess;
  [[nodiscard]] std::byte* bytes(bool to_write) const noexcept;

  std::unique_ptr<share::Guarded> guarded_;
};

/// A lock of guarded data, and the data, while it lives: to write, or for a const T to read.
template <class T>
class GuardedAccess {
 public:
  static constexpr bool writes = !std::is_const_v<T>;

  GuardedAccess(GuardedBytes& guarded, std::size_t count) noexcept
      : guarded_(&guarded), count_(count), status_(writes ? guarded.lock() : guarded.lock_shared()) {
    if (status_ == Status::ok || status_ == Status::holder_died) {
      data_ = reinterpret_cast<T*>(guarded.bytes(writes));
    }
  }
  GuardedAccess(GuardedAccess&& other) noexcept
      : guarded_(other.guarded_), data_(other.data_), count_(other.count_), status_(other.status_) {
    other.data_ = nullptr;
  }
  GuardedAccess& operator=(GuardedAccess&&) = delete;
  ~GuardedAccess() { (void)unlock(); }

  /// What locking answered.
  [[nodiscard]] Status status() const noexcept { return status_; }
  /// It has the lock.
  explicit operator bool() const noexcept { return data_ != nullptr; }
  /// Before its end. Answers as that of the data; ok where it has no lock.
  Status unlock() noexcept {
    if (data_ == nullptr) return Status::ok;
    data_ = nullptr;
    return writes ? guarded_->unlock() : guarded_->unlock_shared();
  }

  T& operator*() const noexcept { return *data(); }
  T* operator->() const noexcept { return data(); }
  T& operator[](std::size_t index) const noexcept { return data()[index]; }
  [[nodiscard]] T* begin() const noexcept { return data(); }
  [[nodiscard]] T* end() const noexcept { return data() + count_; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> span() const noexcept { return {data(), count_}; }
  [[nodiscard]] T* data() const noexcept {
    if (data_ == nullptr) (void)guarded_->bytes(writes);  // says what is wrong
    return data_;
  }

 private:
  GuardedBytes* guarded_;
  T* data_ = nullptr;
  std::size_t count_;
  Status status_;
};

/// A value of all ranks that may be touched only with its lock.
///
///   guarded<Totals> totals(job, Totals{});
///   totals.write()->sum += 1;
///   std::printf("%ld\n", totals.read()->sum);
template <class T>
class guarded : public GuardedBytes {
  static_assert(std::is_trivially_copyable_v<T>, "it moves as bytes: T must be trivially copyable");

 public:
  /// Collective over the job: all ranks make their guarded data in the same order, one thread of each at a time. The
  /// home's `initial` counts. Throws SetupError, in all ranks: sizes or options differ, or one is wrong; no memory; a
  /// rank died.
  explicit guarded(Job& job, const T& initial = T{}, const GuardedOptions& options = {})
      : GuardedBytes(job, 1, sizeof(T), options, std::as_bytes(std::span(&initial, 1))) {}

  [[nodiscard]] GuardedAccess<T> write() noexcept { return {*this, 1}; }
  [[nodiscard]] GuardedAccess<const T> read() noexcept { return {*this, 1}; }
  /// With lock() or lock_shared() held.
  [[nodiscard]] T& value() noexcept { return *reinterpret_cast<T*>(written()); }
  [[nodiscard]] const T& value() const noexcept { return *reinterpret_cast<const T*>(read_only()); }
};

/// The same for `count` elements, which begin as zeros.
template <class T>
class guarded_span : public GuardedBytes {
  static_assert(std::is_trivially_copyable_v<T>, "it moves as bytes: T must be trivially copyable");

 public:
  guarded_span(Job& job, std::size_t count, const GuardedOptions& options = {})
      : GuardedBytes(job, count, sizeof(T), options, {}), count_(count) {}

  [[nodiscard]] GuardedAccess<T> write() noexcept { return {*this, count_}; }
  [[nodiscard]] GuardedAccess<const T> read() noexcept { return {*this, count_}; }
  [[nodiscard]] std::span<T> values() noexcept { return {reinterpret_cast<T*>(written()), count_}; }
  [[nodiscard]] std::span<const T> values() const noexcept { return {reinterpret_cast<const T*>(read_only()), count_}; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  std::size_t count_;
};

}  // namespace tonari
