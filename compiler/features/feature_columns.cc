#include "compiler/features/feature_columns.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/features/features.h"

namespace kiln::features {
namespace {

#define KILN_NAME(name) #name,
constexpr std::string_view kBufferNames[] = {KILN_FEATURE_BUFFER(KILN_NAME)};
constexpr std::string_view kAccessNames[] = {KILN_FEATURE_ACCESS(KILN_NAME)};
constexpr std::string_view kHeadNames[] = {
    KILN_FEATURE_OPERATIONS(KILN_NAME) KILN_FEATURE_POSITIONS(KILN_NAME, vec)
        KILN_FEATURE_POSITIONS(KILN_NAME, unroll) KILN_FEATURE_POSITIONS(KILN_NAME, parallel)
            KILN_FEATURE_LAUNCH(KILN_NAME)};
constexpr std::string_view kNestNames[] = {KILN_FEATURE_NEST(KILN_NAME)};
constexpr std::string_view kTailNames[] = {KILN_FEATURE_ROW(KILN_NAME)
                                               KILN_FEATURE_KERNEL(KILN_NAME)};
#undef KILN_NAME

struct Names {
  std::vector<std::string> texts;
  std::vector<std::string_view> views;

  Names() {
    for (std::string_view name : kHeadNames) texts.emplace_back(name);
    AddSlots(kBufferNames);
    for (int i = 0; i < kNumCurve; ++i) texts.push_back(fmt::format("arith_intensity_curve_{}", i));
    for (std::string_view name : kNestNames) texts.emplace_back(name);
    AddSlots(kAccessNames);
    for (std::string_view name : kTailNames) texts.emplace_back(name);
    KILN_CHECK(texts.size() == col::kNumColumns);
    views.assign(texts.begin(), texts.end());
  }

  void AddSlots(std::span<const std::string_view> names) {
    for (int slot = 0; slot < kNumSlots; ++slot) {
      for (std::string_view name : names) texts.push_back(fmt::format("B{}.{}", slot, name));
    }
  }
};

}  // namespace

std::span<const std::string_view> FeatureNames() {
  static const Names names;
  return names.views;
}

float Slog(double x) {
  if (x == 0) return 0;
  const float magnitude = std::log2f(static_cast<float>(std::fabs(x) + 1));
  return x < 0 ? -magnitude : magnitude;
}

}  // namespace kiln::features
