// Writes a file in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open: slices in lanes, and counters. The format calls a group of lanes a process and a lane a
// thread.
//
// The file is written as a stream, and no event is kept. Events may come in any order; those of one
// lane must lie within each other or apart. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace kiln::client {

class TraceEvents {
 public:
  using Sink = std::function<Status(std::string_view bytes)>;
  // A fact about an event, which the viewer shows when the event is chosen.
  using Fact = std::pair<std::string_view, std::string>;
  using Facts = std::initializer_list<Fact>;
  using Series = std::initializer_list<std::pair<std::string_view, double>>;

  // `sink` gets the file piece by piece. After its first error it gets nothing more.
  explicit TraceEvents(Sink sink);

  // `order`: groups are shown in ascending order of it.
  void NameGroup(int group, std::string_view name, int order);
  void NameLane(int group, int lane, std::string_view name);
  // Times are in microseconds, of any origin that all events share.
  void Slice(int group, int lane, std::string_view name, double begin_us, double us,
             Facts facts = {});
  // Sets the series of the counter from this time on.
  void Counter(int group, std::string_view name, double at_us, Series series);

  // Ends the file. Returns the first error of the sink.
  Status Finish();
  int64_t events() const { return events_; }

 private:
  void Begin(std::string_view kind, int group, std::string_view name);
  void AddTime(std::string_view name, double us);
  void AddText(std::string_view name, std::string_view text);
  void End();
  void Flush();

  const Sink sink_;
  std::string buffer_;
  int64_t events_ = 0;
  Status status_;
};

}  // namespace kiln::client
