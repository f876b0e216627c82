#include "runner/hours.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"

namespace kiln::runner {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
constexpr char kExample[] = "as in \"mon-fri 20:00-06:00, sat-sun\"";

using Words = std::vector<std::string>;

// Returns the words between blanks, in small letters.
Words WordsOf(std::string_view text) {
  Words words;
  bool is_new = true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isspace(byte) != 0) {
      is_new = true;
      continue;
    }
    if (is_new) words.emplace_back();
    is_new = false;
    words.back() += static_cast<char>(std::tolower(byte));
  }
  return words;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Returns the two sides of a "-"; without one the same text twice.
std::optional<std::pair<std::string_view, std::string_view>> Ends(std::string_view text) {
  const std::vector<std::string_view> parts = Split(text, '-');
  if (parts.size() > 2) return std::nullopt;
  return std::pair(parts.front(), parts.back());
}

// Returns the day's number from Monday on.
std::optional<int> ParseDay(std::string_view text) {
  const auto* const day = std::ranges::find(kDays, text);
  if (day == kDays.end()) return std::nullopt;
  return static_cast<int>(day - kDays.begin());
}

// Returns the minute of "HH:MM", 1440 for "24:00".
std::optional<int> ParseMinute(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  for (const size_t at : {0, 1, 3, 4}) {
    if (text[at] < '0' || text[at] > '9') return std::nullopt;
  }
  const int hour = 10 * (text[0] - '0') + (text[1] - '0');
  const int minute = 10 * (text[3] - '0') + (text[4] - '0');
  if (minute > 59 || hour > 24 || (hour == 24 && minute > 0)) return std::nullopt;
  return 60 * hour + minute;
}

StatusOr<std::pair<int, int>> ParseDays(std::string_view text) {
  const auto ends = Ends(text);
  if (ends.has_value()) {
    const std::optional<int> from = ParseDay(ends->first), to = ParseDay(ends->second);
    if (from.has_value() && to.has_value()) return std::pair(*from, *to);
  }
  return InvalidArgument("found '{}', expected a day such as mon, or days such as mon-fri, {}",
                         text, kExample);
}

StatusOr<std::pair<int, int>> ParseSpan(std::string_view text) {
  const auto ends = Ends(text);
  std::optional<int> from, to;
  if (ends.has_value() && text.find('-') != std::string_view::npos) {
    from = ParseMinute(ends->first);
    to = ParseMinute(ends->second);
  }
  if (!from.has_value() || !to.has_value() || *from == 24 * 60) {
    return InvalidArgument("found '{}', expected times from 00:00 to 24:00 such as 20:00-06:00, {}",
                           text, kExample);
  }
  if (from == to) {
    return InvalidArgument(
        "the span '{}' ends when it begins; for a whole day leave it out, or say 00:00-24:00",
        text);
  }
  return std::pair(*from, *to);
}

bool IsSpan(std::string_view word) { return word.find(':') != std::string_view::npos; }

}  // namespace

StatusOr<Hours> Hours::Parse(std::string_view text, const absl::TimeZone& zone) {
  Hours hours(zone);
  for (const std::string_view entry : Split(text, ',')) {
    KILN_RETURN_IF_ERROR(Annotate(hours.AddEntry(entry), fmt::format("hours '{}'", text)));
  }
  return hours;
}

Status Hours::AddEntry(std::string_view entry) {
  const Words words = WordsOf(entry);
  if (words.empty())
    return InvalidArgument("an entry is empty, expected days and times, {}", kExample);
  std::pair<int, int> days(0, 6), span(0, kDayMinutes);
  size_t at = 0;
  if (!IsSpan(words[0])) {
    KILN_ASSIGN_OR_RETURN(days, ParseDays(words[at++]));
  }
  if (at < words.size()) {
    KILN_ASSIGN_OR_RETURN(span, ParseSpan(words[at++]));
  }
  if (at < words.size()) {
    return InvalidArgument("found '{}' behind '{}', expected a comma between them, {}", words[at],
                           words[at - 1], kExample);
  }
  for (int day = days.first;; day = (day + 1) % 7) {
    AddSpan(day, span.first, span.second);
    if (day == days.second) break;
  }
  if (!text_.empty()) text_ += ", ";
  text_ += words[0];
  if (words.size() > 1) text_ += " " + words[1];
  return OkStatus();
}

void Hours::AddSpan(int day, int from_minute, int to_minute) {
  if (to_minute < from_minute) to_minute += kDayMinutes;
  for (int minute = from_minute; minute < to_minute; ++minute) {
    minutes_.set(static_cast<size_t>((day * kDayMinutes + minute) % kWeekMinutes));
  }
}

int Hours::MinuteOfWeek(const absl::CivilSecond& civil) const {
  // absl::Weekday begins with monday = 0.
  const int day = static_cast<int>(absl::GetWeekday(civil));
  return day * kDayMinutes + 60 * civil.hour() + civil.minute();
}

bool Hours::Contains(absl::Time time) const {
  return minutes_.test(static_cast<size_t>(MinuteOfWeek(zone_.At(time).cs)));
}

// Contains changes at a minute of the week at which the bits change, or when clocks are set forward
// or back. A time on the wall stands for two times where clocks are set back.
absl::Time Hours::NextChange(absl::Time time) const {
  std::vector<absl::Time> candidates;
  // A span may fall into an hour that clocks leave out, and comes a week later then.
  const absl::CivilMinute from(zone_.At(time - absl::Hours(24)).cs);
  constexpr int kMinutes = 2 * kWeekMinutes + 2 * kDayMinutes;
  int minute = MinuteOfWeek(absl::CivilSecond(from));
  for (int i = 0; i < kMinutes; ++i, minute = (minute + 1) % kWeekMinutes) {
    const int before = (minute + kWeekMinutes - 1) % kWeekMinutes;
    if (minutes_[static_cast<size_t>(minute)] == minutes_[static_cast<size_t>(before)]) continue;
    const absl::TimeZone::TimeInfo at = zone_.At(absl::CivilSecond(from + i));
    candidates.push_back(at.pre);
    candidates.push_back(at.post);
  }
  absl::TimeZone::CivilTransition transition;
  absl::Time set = time;
  while (zone_.NextTransition(set, &transition)) {
    set = zone_.At(transition.to).trans;
    if (set <= time || set > time + absl::Hours(16 * 24)) break;
    candidates.push_back(set);
  }
  std::ranges::sort(candidates);
  const bool now = Contains(time);
  for (const absl::Time candidate : candidates) {
    if (candidate > time && Contains(candidate) != now) return candidate;
  }
  return absl::InfiniteFuture();
}

StatusOr<absl::TimeZone> FindZone(std::string_view name) {
  if (name.empty()) return absl::LocalTimeZone();
  absl::TimeZone zone;
  if (absl::LoadTimeZone(std::string(name), &zone)) return zone;
  return InvalidArgument(
      "this machine knows no time zone '{}'; expected a name of /usr/share/zoneinfo such as "
      "Europe/Berlin, or UTC",
      name);
}

}  // namespace kiln::runner
