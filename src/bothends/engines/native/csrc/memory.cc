#include "memory.h"

#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace bothends {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Bytes::Bytes(size_t size, bool zero) {
  if (size == 0) return;
  const size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
  void* memory = nullptr;
  // Aligned memory of the C library, not a mapping of our own: AddressSanitizer watches its ends.
  if (posix_memalign(&memory, alignment, round_up(size, alignment)) != 0) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Before the first write, or the pages are small already.
  if (alignment == kHugePage) madvise(memory, round_up(size, alignment), MADV_HUGEPAGE);
#endif
  if (zero) std::memset(memory, 0, size);
  data_ = static_cast<uint8_t*>(memory);
  size_ = size;
}

Bytes::~Bytes() { std::free(data_); }

}  // namespace bothends
