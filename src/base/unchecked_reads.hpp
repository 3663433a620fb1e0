#pragma once

#ifdef __SANITIZE_THREAD__
extern "C" {  // functions of ThreadSanitizer's library, which has no header for them
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace tonari {

/// During its lifetime, ThreadSanitizer checks no reads of this thread. For reads that may race with another thread's
/// writes, where the reader discards the bytes if they did; or that the kernel keeps apart from them.
class UncheckedReads {
 public:
#ifdef __SANITIZE_THREAD__
  UncheckedReads() noexcept { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~UncheckedReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  UncheckedReads() noexcept {}  // NOLINT(modernize-use-equals-default): not trivial, so that it counts as used
#endif
  UncheckedReads(UncheckedReads&&) = delete;
};

}  // namespace tonari
