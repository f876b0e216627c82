// The mutator of targets that read text. Some of its changes know lines, lists, numbers and words,
// so that a valid text often stays valid; the others are the engine's.
#include <algorithm>
#include <string>

#include "base/numbers/rng.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets/fuzz_target.h"

namespace kiln::fuzz {
namespace {

constexpr std::string_view kSeparators[] = {"\n", ", ", " ", "], "};

size_t Put(std::string_view text, uint8_t* out, size_t max_size) {
  const size_t size = std::min(text.size(), max_size);
  std::copy_n(text.data(), size, reinterpret_cast<char*>(out));
  return size;
}

std::string ChangedText(std::string_view text, Rng& rng) {
  switch (UniformInt(rng, 4)) {
    case 0:
      return ReplaceEverywhere(text, rng);
    case 1:
      return ChangeListHead(text, rng);
    default:
      return MutatePieces(text, "", PickFrom(rng, std::span(kSeparators)), rng);
  }
}

}  // namespace
}  // namespace kiln::fuzz

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace kiln::fuzz;
  kiln::Rng rng(seed);
  if (size == 0 || kiln::Chance(rng, 0.4)) return LLVMFuzzerMutate(data, size, max_size);
  return Put(ChangedText(InputText(data, size), rng), data, max_size);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_size, unsigned int seed) {
  using namespace kiln::fuzz;
  kiln::Rng rng(seed);
  const std::string_view separator = kiln::PickFrom(rng, std::span(kSeparators));
  return Put(MutatePieces(InputText(data1, size1), InputText(data2, size2), separator, rng), out,
             max_size);
}
