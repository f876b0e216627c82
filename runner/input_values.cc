#include "runner/input_values.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "base/arrays/packing.h"
#include "rpc/random_fill.h"

namespace kiln::runner {
namespace {

constexpr int64_t kSharedPart = 8;
constexpr int64_t kMaxShared = 4096;

std::string FillKey(const Argument& input, int ordinal, uint64_t seed, Content content) {
  const std::string key = InputKey(input, ordinal, seed);
  return content == Content::kTimed ? key : "other:" + key;
}

// Fills `bytes` with the elements of the input from number `first` on. The other content, which no
// time is taken with, has random values where the first one ascends in runs.
void Fill(std::span<std::byte> bytes, const Argument& input, const std::string& key,
          Content content, int64_t first) {
  std::optional<ValueRange> range = input.range;
  if (range && content == Content::kOther) range->run = 0;
  FillRandom(bytes, input.dtype, input.index_limit, key, range, first);
}

}  // namespace

int64_t SharedElements(const Argument& input) {
  return std::min(input.elements / kSharedPart, kMaxShared);
}

std::string ContentKey(const Argument& input, int ordinal, uint64_t seed, Content content) {
  const std::string key = FillKey(input, ordinal, seed, content);
  if (!input.packing) return key;
  return fmt::format("{} packed {} as [{}]", key, PackingText(*input.packing),
                     fmt::join(PackedShape(*input.packing), ", "));
}

UnsetBytes InputBytes(const Argument& input, int ordinal, uint64_t seed, Content content,
                      int threads) {
  UnsetBytes bytes(static_cast<size_t>(input.plain_bytes()));
  const std::string key = FillKey(input, ordinal, seed, content);
  const auto element_bytes = static_cast<size_t>(DTypeBytes(input.dtype));
  // An element depends only on the key and its place.
  ForPieces(bytes.size(), threads, [&](size_t at, size_t count) {
    Fill(std::span(bytes).subspan(at, count), input, key, content,
         static_cast<int64_t>(at / element_bytes));
  });
  if (content == Content::kOther) {
    const auto shared = static_cast<size_t>(SharedElements(input)) * element_bytes;
    Fill(std::span(bytes).first(shared), input, FillKey(input, ordinal, seed, Content::kTimed),
         Content::kTimed, 0);
  }
  if (!input.packing) return bytes;
  UnsetBytes packed(static_cast<size_t>(input.bytes));
  Pack(*input.packing, DTypeBytes(input.dtype), bytes, packed);
  return packed;
}

}  // namespace kiln::runner
