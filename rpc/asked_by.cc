#include "rpc/asked_by.h"

namespace kiln {
namespace {

constexpr std::string_view kBeforeTime = " at ";
constexpr std::string_view kBeforeWhy = ": ";
constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%SZ";

}  // namespace

std::string PrintAskedBy(const AskedBy& asked) {
  std::string text = asked.name;
  if (asked.at.has_value()) {
    text += kBeforeTime;
    text += absl::FormatTime(kTimeFormat, *asked.at, absl::UTCTimeZone());
  }
  if (!asked.why.empty()) {
    text += kBeforeWhy;
    text += asked.why;
  }
  return text;
}

AskedBy ParseAskedBy(std::string_view text) {
  AskedBy asked;
  std::string_view head = text;
  if (const size_t colon = text.find(kBeforeWhy); colon != std::string_view::npos) {
    head = text.substr(0, colon);
    asked.why = text.substr(colon + kBeforeWhy.size());
  }
  if (const size_t at = head.rfind(kBeforeTime); at != std::string_view::npos) {
    absl::Time time;
    std::string error;
    const std::string written(head.substr(at + kBeforeTime.size()));
    if (absl::ParseTime(kTimeFormat, written, absl::UTCTimeZone(), &time, &error) &&
        time != absl::InfiniteFuture() && time != absl::InfinitePast()) {
      asked.at = time;
      head = head.substr(0, at);
    }
  }
  asked.name = head;
  return asked;
}

}  // namespace kiln
