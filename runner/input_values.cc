#include "runner/input_values.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/packing.h"
#include "rpc/random_fill.h"

namespace kiln::runner {
namespace {

constexpr int64_t kSharedPart = 8;
constexpr int64_t kMostShared = 4096;

std::string FillKey(const Argument& input, int ordinal, uint64_t seed, Content content) {
  const std::string key = InputKey(input, ordinal, seed);
  return content == Content::kTimed ? key : "other:" + key;
}

void Fill(std::span<std::byte> bytes, const Argument& input, const std::string& key) {
  FillRandom(bytes, input.dtype, input.index_limit, key, input.range);
}

}  // namespace

int64_t SharedElements(const Argument& input) {
  return std::min(input.elements / kSharedPart, kMostShared);
}

std::string ContentKey(const Argument& input, int ordinal, uint64_t seed, Content content) {
  const std::string key = FillKey(input, ordinal, seed, content);
  if (!input.packing) return key;
  return fmt::format("{} packed {} as [{}]", key, PackingText(*input.packing),
                     fmt::join(PackedShape(*input.packing), ", "));
}

std::vector<std::byte> InputBytes(const Argument& input, int ordinal, uint64_t seed,
                                  Content content) {
  std::vector<std::byte> bytes(static_cast<size_t>(input.plain_bytes()));
  Fill(bytes, input, FillKey(input, ordinal, seed, content));
  if (content == Content::kOther) {
    // An element depends on the key and its place alone.
    const auto shared = static_cast<size_t>(SharedElements(input) * DTypeBytes(input.dtype));
    Fill(std::span(bytes).first(shared), input, FillKey(input, ordinal, seed, Content::kTimed));
  }
  if (!input.packing) return bytes;
  std::vector<std::byte> packed(static_cast<size_t>(input.bytes));
  Pack(*input.packing, DTypeBytes(input.dtype), bytes, packed);
  return packed;
}

}  // namespace kiln::runner
