#include "runner/hours.h"

#include <utility>

#include "absl/time/civil_time.h"
#include "base/status_testing.h"

namespace kiln::runner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

absl::TimeZone Zone(const char* name) {
  const auto zone = FindZone(name);
  KILN_CHECK(zone.ok(), "{}; the package tzdata has it", Message(zone.status()));
  return *zone;
}

Hours Parsed(const char* text, const absl::TimeZone& zone = absl::UTCTimeZone()) {
  const auto hours = Hours::Parse(text, zone);
  KILN_CHECK(hours.ok(), "{}", Message(hours.status()));
  return *hours;
}

// A time of UTC. 2026-11-30 is a Monday.
absl::Time At(int month, int day, int hour, int minute = 0) {
  return absl::FromCivil(absl::CivilMinute(2026, month, day, hour, minute), absl::UTCTimeZone());
}

TEST(HoursTest, NightsAndWeekends) {
  const Hours hours = Parsed("mon-fri 20:00-06:00, sat-sun");
  EXPECT_FALSE(hours.Contains(At(11, 30, 0))) << "Sunday ends at midnight";
  EXPECT_FALSE(hours.Contains(At(11, 30, 19, 59)));
  EXPECT_TRUE(hours.Contains(At(11, 30, 20)));
  EXPECT_TRUE(hours.Contains(At(12, 1, 5, 59)));
  EXPECT_FALSE(hours.Contains(At(12, 1, 6)));
  EXPECT_TRUE(hours.Contains(At(12, 4, 23)));
  EXPECT_TRUE(hours.Contains(At(12, 5, 12)));
  EXPECT_TRUE(hours.Contains(At(12, 6, 23, 59)));
  EXPECT_EQ(hours.NextChange(At(11, 30, 19)), At(11, 30, 20));
  EXPECT_EQ(hours.NextChange(At(11, 30, 20)), At(12, 1, 6)) << "later than the time";
  EXPECT_EQ(hours.NextChange(At(12, 4, 21)), At(12, 7, 0)) << "the night joins the weekend";
}

TEST(HoursTest, EntriesOfEachForm) {
  EXPECT_TRUE(Parsed("sun 22:00-06:00").Contains(At(11, 30, 5, 59))) << "over the end of a week";
  EXPECT_FALSE(Parsed("sun 22:00-06:00").Contains(At(11, 29, 5, 59)));
  EXPECT_EQ(Parsed("fri-mon").NextChange(At(12, 2, 12)), At(12, 4, 0));
  EXPECT_EQ(Parsed("fri-mon").NextChange(At(12, 5, 12)), At(12, 8, 0));
  EXPECT_TRUE(Parsed("22:30-24:00").Contains(At(12, 2, 23, 59)));
  EXPECT_FALSE(Parsed("22:30-24:00").Contains(At(12, 3, 0)));
  EXPECT_EQ(Parsed("wed 00:00-00:01").NextChange(At(12, 2, 0, 1)), At(12, 9, 0));
  for (const char* always : {"mon-sun", "00:00-24:00", "tue-mon", "00:00-12:00, 12:00-24:00"}) {
    EXPECT_TRUE(Parsed(always).Contains(At(12, 2, 0))) << always;
    EXPECT_EQ(Parsed(always).NextChange(At(12, 2, 0)), absl::InfiniteFuture()) << always;
  }
}

TEST(HoursTest, ItsTextMeansTheSame) {
  const Hours hours = Parsed(" MON-fri  20:00-06:00 ,sat-SUN,  tue");
  EXPECT_EQ(hours.text(), "mon-fri 20:00-06:00, sat-sun, tue");
  EXPECT_EQ(Parsed(hours.text().c_str()).text(), hours.text());
}

TEST(HoursTest, SaysWhatIsWrong) {
  const auto refusal = [](const char* text) {
    return std::string(Message(Hours::Parse(text, absl::UTCTimeZone()).status()));
  };
  EXPECT_EQ(refusal("mon 25:00-06:00"),
            "hours 'mon 25:00-06:00': found '25:00-06:00', expected times from 00:00 to 24:00 such "
            "as 20:00-06:00, as in \"mon-fri 20:00-06:00, sat-sun\"");
  EXPECT_THAT(refusal("mon-fir"), AllOf(HasSubstr("found 'mon-fir'"), HasSubstr("mon-fri")));
  EXPECT_THAT(refusal("mon-fri 20:00-06:00 sat"), HasSubstr("expected a comma between them"));
  EXPECT_THAT(refusal("20:00-20:00"), HasSubstr("ends when it begins"));
  for (const char* empty : {"", " ", "mon,", ",mon", "mon,,tue"}) {
    EXPECT_THAT(refusal(empty), HasSubstr("an entry is empty")) << empty;
  }
  for (const char* bad : {"mon-", "-", "mon-tue-wed", "mo", "mon fri", "20:00", "8:00-09:00",
                          "24:00-06:00", "24:01-06:00", "20:60-06:00", "20:00-06:00-07:00",
                          "20.00-06.00", "-1:00-02:00", "20:00–06:00"}) {
    EXPECT_THAT(refusal(bad), HasSubstr("expected ")) << bad;
  }
}

TEST(HoursTest, ANightIsAnHourShorterOrLongerWhereClocksAreSet) {
  const Hours hours = Parsed("22:00-06:00", Zone("Europe/Berlin"));
  EXPECT_EQ(hours.NextChange(At(3, 28, 12)), At(3, 28, 21));
  EXPECT_EQ(hours.NextChange(At(3, 28, 21)), At(3, 29, 4));
  EXPECT_EQ(hours.NextChange(At(10, 24, 12)), At(10, 24, 20));
  EXPECT_EQ(hours.NextChange(At(10, 24, 20)), At(10, 25, 5));
}

TEST(HoursTest, ATimeThatClocksNeverShowOrShowTwice) {
  const Hours hours = Parsed("sun 02:30-05:00", Zone("Europe/Berlin"));
  // Clocks go from 02:00 to 03:00.
  EXPECT_EQ(hours.NextChange(At(3, 29, 0)), At(3, 29, 1));
  EXPECT_EQ(hours.NextChange(At(3, 29, 1)), At(3, 29, 3));
  // Clocks go from 03:00 to 02:00.
  EXPECT_EQ(hours.NextChange(At(10, 25, 0)), At(10, 25, 0, 30));
  EXPECT_EQ(hours.NextChange(At(10, 25, 0, 30)), At(10, 25, 1));
  EXPECT_EQ(hours.NextChange(At(10, 25, 1)), At(10, 25, 1, 30));
  EXPECT_EQ(hours.NextChange(At(10, 25, 1, 30)), At(10, 25, 4));
}

// NextChange agrees with a walk from minute to minute, through weeks in which clocks are set.
TEST(HoursTest, TheNextChangeIsTheFirst) {
  constexpr std::pair<int, int> kStarts[] = {{3, 6}, {3, 26}, {4, 2}, {10, 1}, {10, 22}};
  for (const char* name : {"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}) {
    for (const char* text : {"mon-fri 20:00-06:00, sat-sun", "01:45-02:15", "sun 02:00-03:00",
                             "sat 23:30-02:30, mon 00:00-00:01"}) {
      const Hours hours = Parsed(text, Zone(name));
      for (const auto& [month, day] : kStarts) {
        absl::Time time = At(month, day, 0);
        absl::Time next = hours.NextChange(time);
        for (int i = 0; i < 10 * 24 * 60; ++i) {
          const bool before = hours.Contains(time);
          time += absl::Minutes(1);
          ASSERT_LE(time, next) << name << " " << text;
          if (hours.Contains(time) == before) continue;
          ASSERT_EQ(time, next) << name << " " << text;
          next = hours.NextChange(time);
        }
      }
    }
  }
}

TEST(HoursTest, ZonesHaveNames) {
  EXPECT_OK(FindZone(""));
  EXPECT_EQ(Zone("UTC").name(), "UTC");
  EXPECT_THAT(FindZone("Europe/Atlantis"),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'Europe/Atlantis'"), HasSubstr("such as Europe/Berlin"))));
}

}  // namespace
}  // namespace kiln::runner
