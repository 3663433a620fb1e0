#pragma once

#ifdef __SANITIZE_THREAD__
extern "C" {  // of its library, which has no header for them
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace tonari {

/// While it lives, ThreadSanitizer looks at no read of this thread: for bytes that another thread may be writing, where
/// whoever gets them uses none of those.
class UncheckedReads {
 public:
#ifdef __SANITIZE_THREAD__
  UncheckedReads() noexcept { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~UncheckedReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
#else
  UncheckedReads() noexcept {}  // not trivial, so that it counts as used
#endif
  UncheckedReads(UncheckedReads&&) = delete;
};

}  // namespace tonari
