// The hours of the week in which a runner may use its device: "mon-fri 20:00-06:00, sat-sun".
//
// The text is a list of entries with commas between. An entry has days, a span of time, or both. A
// day is mon, tue, wed, thu, fri, sat or sun; two days with "-" between mean all days from the
// first to the second, also over the end of a week. A span is HH:MM-HH:MM; one that ends before it
// begins goes on into the next day, and belongs to the day on which it begins. An entry without
// days is for all days, and one without a span for whole days. The hours are those of clocks on
// the wall in a time zone: where such a clock is set forward or back, a span is an hour shorter or
// longer.
//
// A value. Cost: Contains a look-up; NextChange some hundred of them.
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace kiln::runner {

class Hours {
 public:
  // InvalidArgument says which entry is wrong, and what is expected.
  static StatusOr<Hours> Parse(std::string_view text, const absl::TimeZone& zone);

  bool Contains(absl::Time time) const;
  // Returns the next time at which Contains changes; InfiniteFuture if it never does.
  absl::Time NextChange(absl::Time time) const;

  // Returns the text with single blanks and in small letters: "mon-fri 20:00-06:00, sat-sun".
  const std::string& text() const { return text_; }
  const absl::TimeZone& zone() const { return zone_; }

 private:
  static constexpr int kDayMinutes = 24 * 60;
  static constexpr int kWeekMinutes = 7 * kDayMinutes;

  explicit Hours(const absl::TimeZone& zone) : zone_(zone) {}
  Status AddEntry(std::string_view entry);
  void AddSpan(int day, int from_minute, int to_minute);
  // Returns the minute of the week, from Monday 00:00 on.
  int MinuteOfWeek(const absl::CivilSecond& civil) const;

  absl::TimeZone zone_;
  std::string text_;
  // Bits of the minutes that are in the hours.
  std::bitset<kWeekMinutes> minutes_;
};

// Returns the zone of this name, "Europe/Berlin"; "" = this machine's. InvalidArgument for a zone
// that this machine does not know.
StatusOr<absl::TimeZone> FindZone(std::string_view name);

}  // namespace kiln::runner
