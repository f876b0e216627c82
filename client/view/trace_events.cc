#include "client/view/trace_events.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/text/json_string.h"

namespace kiln::client {
namespace {

constexpr size_t kPieceBytes = 64 * 1024;

}  // namespace

TraceEvents::TraceEvents(Sink sink)
    : sink_(std::move(sink)), buffer_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[") {}

void TraceEvents::Begin(std::string_view kind, int group, std::string_view name) {
  fmt::format_to(std::back_inserter(buffer_), "{}\n{{\"ph\":\"{}\",\"pid\":{}",
                 events_ == 0 ? "" : ",", kind, group);
  AddText("name", name);
  ++events_;
}

void TraceEvents::AddText(std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(buffer_), ",\"{}\":", name);
  AppendJsonString(text, buffer_);
}

// Whole numbers of microseconds, as unix times are, have no fraction.
void TraceEvents::AddTime(std::string_view name, double us) {
  const bool is_whole = us == std::floor(us) && std::abs(us) < 1e18;
  if (is_whole) {
    fmt::format_to(std::back_inserter(buffer_), ",\"{}\":{}", name, static_cast<int64_t>(us));
  } else {
    fmt::format_to(std::back_inserter(buffer_), ",\"{}\":{:.3f}", name, us);
  }
}

void TraceEvents::End() {
  buffer_ += '}';
  if (buffer_.size() >= kPieceBytes) Flush();
}

void TraceEvents::Flush() {
  if (status_.ok()) status_ = sink_(buffer_);
  buffer_.clear();
}

void TraceEvents::NameGroup(int group, std::string_view name, int order) {
  Begin("M", group, "process_name");
  buffer_ += ",\"args\":{\"name\":";
  AppendJsonString(name, buffer_);
  buffer_ += '}';
  End();
  Begin("M", group, "process_sort_index");
  fmt::format_to(std::back_inserter(buffer_), ",\"args\":{{\"sort_index\":{}}}", order);
  End();
}

void TraceEvents::NameLane(int group, int lane, std::string_view name) {
  Begin("M", group, "thread_name");
  fmt::format_to(std::back_inserter(buffer_), ",\"tid\":{},\"args\":{{\"name\":", lane);
  AppendJsonString(name, buffer_);
  buffer_ += '}';
  End();
}

void TraceEvents::Slice(int group, int lane, std::string_view name, double begin_us, double us,
                        Facts facts) {
  Begin("X", group, name);
  fmt::format_to(std::back_inserter(buffer_), ",\"tid\":{}", lane);
  AddTime("ts", begin_us);
  AddTime("dur", us);
  std::string_view before = ",\"args\":{";
  for (const auto& [fact, text] : facts) {
    if (text.empty()) continue;
    fmt::format_to(std::back_inserter(buffer_), "{}\"{}\":", before, fact);
    AppendJsonString(text, buffer_);
    before = ",";
  }
  if (before == ",") buffer_ += '}';
  End();
}

void TraceEvents::Counter(int group, std::string_view name, double at_us, Series series) {
  Begin("C", group, name);
  AddTime("ts", at_us);
  std::string_view before = ",\"args\":{";
  for (const auto& [of, value] : series) {
    fmt::format_to(std::back_inserter(buffer_), "{}\"{}\":{}", before, of,
                   std::isfinite(value) ? value : 0);
    before = ",";
  }
  buffer_ += '}';
  End();
}

Status TraceEvents::Finish() {
  buffer_ += "\n]}\n";
  Flush();
  return status_;
}

}  // namespace kiln::client
