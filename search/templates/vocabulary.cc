#include "search/templates/vocabulary.h"

#include <algorithm>

namespace kiln::search {
namespace {

constexpr Primitive kPrimitives[] = {
    // Loops.
    {"axes", "loops", "stage", true},
    {"reduce_axes", "loops", "stage", true},
    {"split", "loops", "loop split_knob or loop numbers"},
    {"split_parts", "loops", "loop numbers"},
    {"fuse", "loop", "loops"},
    {"reorder", "", "reorder_knob loops or loops"},
    {"unroll", "", "loops"},
    {"vectorize", "", "loop"},
    {"parallel", "", "loop"},
    {"bind", "", "loop word"},
    {"annotate", "", "annotate_knob loops"},
    {"fetch_by_threads", "", "stage number numbers"},
    // Places.
    {"compute_at", "", "stage loop"},
    {"compute_root", "", "stage"},
    {"inline", "", "stages"},
    {"inline_others", "", ""},
    // New stages.
    {"cache_read", "stage", "stage word stages"},
    {"cache_write", "stage", "stage word"},
    {"accumulator", "stage stage", "stage"},
    {"rfactor", "stage", "loop number"},
    // Code generation.
    {"hint", "", "stage word number"},
    {"storage_align", "", "loop number number"},
    {"layout", "", "loops"},
    {"buffering", "", "stage number word or stage number"},
};

constexpr Primitive kPlaces[] = {
    {"reduction", "stage", ""},
    {"output", "stage", ""},
    {"input", "stage", "stage number"},
    {"op", "stage", "word"},
};

}  // namespace

std::span<const Primitive> Primitives() { return kPrimitives; }
std::span<const Primitive> Places() { return kPlaces; }

const Primitive* FindPrimitive(std::string_view word) {
  const auto* found = std::ranges::find(kPrimitives, word, &Primitive::word);
  return found == std::end(kPrimitives) ? nullptr : found;
}

std::vector<std::string> PrimitiveWords() {
  std::vector<std::string> words;
  for (const Primitive& primitive : kPrimitives) words.emplace_back(primitive.word);
  return words;
}

}  // namespace kiln::search
