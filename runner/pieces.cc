#include "runner/pieces.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace kiln::runner {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 20;
// Less memory is not split, because threads take some microseconds to start.
constexpr size_t kMinBytes = size_t{64} << 20;
constexpr size_t kPageBytes = 4096;

}  // namespace

void ForPieces(size_t bytes, int threads, absl::FunctionRef<void(size_t, size_t)> body) {
  if (threads <= 0) threads = AvailableCpus();
  if (bytes < kMinBytes || threads == 1) return body(0, bytes);
  const auto pieces = static_cast<int64_t>((bytes + kPieceBytes - 1) / kPieceBytes);
  ThreadPool pool(static_cast<int>(std::min<int64_t>(threads, pieces)) - 1);
  pool.ParallelFor(pieces, [&](int64_t piece) {
    const size_t at = static_cast<size_t>(piece) * kPieceBytes;
    body(at, std::min(kPieceBytes, bytes - at));
  });
}

void TouchPages(std::span<std::byte> bytes) {
  ForPieces(bytes.size(), 0, [&](size_t at, size_t count) {
    for (size_t i = 0; i < count; i += kPageBytes) bytes[at + i] = std::byte{0};
  });
}

}  // namespace kiln::runner
