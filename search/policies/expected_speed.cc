#include "search/policies/expected_speed.h"

namespace kiln::search {
namespace {

constexpr std::string_view kCpu = "two cores of a Xeon with AVX-512";
constexpr std::string_view kGpu = "an H200";

// Expected speeds of each class of operators.
struct ExpectedSpeeds {
  ExpectedSpeed complex, simple, direct;
};
constexpr ExpectedSpeeds kOnCpus = {.complex = {0.51, 0.79, 20, 64, kCpu},
                                    .simple = {0.63, 0.94, 9, 64, kCpu},
                                    .direct = {0.74, 1.00, 9, 64, kCpu}};
constexpr ExpectedSpeeds kOnGpus = {.complex = {0.34, 0.61, 29, 256, kGpu},
                                    .simple = {0.62, 0.89, 13, 256, kGpu},
                                    .direct = {0.67, 0.88, 8, 256, kGpu}};

ExpectedSpeed OfClass(const ExpectedSpeeds& speeds, OperatorClass kind) {
  switch (kind) {
    case OperatorClass::kComplexReduction:
      return speeds.complex;
    case OperatorClass::kSimpleReduction:
      return speeds.simple;
    default:
      return speeds.direct;
  }
}

}  // namespace

std::optional<ExpectedSpeed> ExpectedSpeedOf(const target::Target& target, OperatorClass kind) {
  if (!target.kind->runs_programs) return std::nullopt;
  return OfClass(target.is_gpu() ? kOnGpus : kOnCpus, kind);
}

}  // namespace kiln::search
