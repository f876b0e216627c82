#include "runner/canary_reading.h"

namespace kiln::runner {
namespace {

constexpr int kMostSpans = 6;
constexpr double kFaster = 0.98;

}  // namespace

StatusOr<double> SettledSeconds(const std::function<StatusOr<double>()>& time_span) {
  KILN_ASSIGN_OR_RETURN(double before_s, time_span());
  for (int i = 1; i < kMostSpans; ++i) {
    KILN_ASSIGN_OR_RETURN(const double span_s, time_span());
    const bool settled = span_s >= kFaster * before_s;
    before_s = span_s;
    if (settled) break;
  }
  return before_s;
}

}  // namespace kiln::runner
