#include "runner/canary_reading.h"

#include <vector>

#include "base/status_testing.h"

namespace kiln::runner {
namespace {

// Returns the reading of these spans, and how many were taken.
std::pair<double, size_t> ReadingOf(const std::vector<double>& spans_s) {
  size_t taken = 0;
  const auto reading = SettledSeconds([&]() -> StatusOr<double> { return spans_s.at(taken++); });
  return {reading.value(), taken};
}

TEST(CanaryReading, WaitsUntilTheClocksAreUp) {
  EXPECT_EQ(ReadingOf({1.0, 1.0}), std::pair(1.0, size_t{2}));
  EXPECT_EQ(ReadingOf({3.0, 2.0, 1.5, 1.49}), std::pair(1.49, size_t{4}));
  EXPECT_EQ(ReadingOf({1.0, 1.5}), std::pair(1.5, size_t{2})) << "the shorter one was luck";
  EXPECT_EQ(ReadingOf({9, 8, 7, 6, 5, 4, 3}), std::pair(4.0, size_t{6})) << "not for ever";
}

TEST(CanaryReading, PassesErrorsOn) {
  EXPECT_THAT(SettledSeconds([]() -> StatusOr<double> { return Internal("device lost"); }),
              StatusIs(StatusCode::kInternal, testing::HasSubstr("device lost")));
}

}  // namespace
}  // namespace kiln::runner
