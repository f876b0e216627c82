#include "search/tuning/pace.h"

#include <gtest/gtest.h>

namespace kiln::search {
namespace {

TEST(Pace, AFewTrialsAreSpareUntilTheTimesAreKnown) {
  Pace pace;
  EXPECT_EQ(pace.Ahead(64), 4u);
  pace.NoteSearch(3);
  pace.NoteResult(100);
  EXPECT_EQ(pace.interval_s(), 0);
  EXPECT_EQ(pace.Ahead(64), 4u);
}

TEST(Pace, ASearchBeginsAsEarlyAsItTakesResults) {
  Pace pace;
  pace.NoteResult(100);
  pace.NoteResult(100.5);
  pace.NoteSearch(3.2);
  EXPECT_EQ(pace.Ahead(64), 7u + 4);
  EXPECT_EQ(pace.Ahead(4), 8u) << "two rounds";
}

TEST(Pace, NewIntervalsCountATenth) {
  Pace pace;
  pace.NoteResult(100);
  pace.NoteResult(102);
  EXPECT_DOUBLE_EQ(pace.interval_s(), 2);
  pace.NoteResult(103);
  EXPECT_DOUBLE_EQ(pace.interval_s(), 1.9);
}

}  // namespace
}  // namespace kiln::search
