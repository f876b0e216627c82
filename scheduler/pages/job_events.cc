#include "scheduler/pages/job_events.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>

#include "scheduler/pages/job_json.h"

namespace kiln::scheduler {
namespace {

// Longest time until a change is noticed that the hub does not tell.
constexpr absl::Duration kLook = absl::Milliseconds(1'000);

StatusOr<int64_t> AfterOf(const HttpRequest& request) {
  const std::string text =
      request.last_event_id.empty() ? request.Parameter("after") : request.last_event_id;
  if (text.empty()) return 0;
  int64_t after = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), after);
  if (error != std::errc() || end != text.data() + text.size() || after < 0) {
    return InvalidArgument("found the event '{}', expected the number of a record", Bounded(text));
  }
  return after;
}

// Returns [trial, task, cost, error]; the cost of a failed trial is null.
Json PointOf(const store::Record& record) {
  const bool failed = record.error != store::kNoError;
  return {record.trial, record.task_index, failed ? Json() : Json(store::Cost(record)),
          record.error};
}

}  // namespace

StatusOr<std::optional<ServerEvent>> JobEvents::Read() {
  // The state is read before the records: once it is final, no more records come.
  KILN_ASSIGN_OR_RETURN(const auto seen, pages_.Seen(job_id_));
  KILN_ASSIGN_OR_RETURN(const std::vector<store::Record> records,
                        NextRecords(pages_.store(), job_id_, last_id_, kMostTrials));
  Json data;
  data["job"] = JobRowJson(seen->status, seen->curve);
  data["points"] = Json::array();
  for (const store::Record& record : records) data["points"].push_back(PointOf(record));
  const bool is_final = data["job"]["is_final"].get<bool>() && records.size() < kMostTrials;
  const std::string state = TextOf({data["job"]["state"], data["job"]["message"],
                                    data["job"]["phase"], data["job"]["total_s"], is_final});
  if (records.empty() && state == last_state_) return std::optional<ServerEvent>();
  if (!records.empty()) last_id_ = records.back().id;
  data["last_record"] = last_id_;
  data["is_final"] = is_final;
  last_state_ = state;
  is_final_ = is_final;
  return std::optional(ServerEvent{.id = fmt::format("{}", last_id_), .data = TextOf(data)});
}

std::optional<std::vector<ServerEvent>> JobEvents::Next(absl::Duration most) {
  if (has_ended_ || hub_.closed()) return std::nullopt;
  if (is_final_) {
    has_ended_ = true;
    // A browser drops an event without data.
    return std::vector<ServerEvent>{
        ServerEvent{.id = fmt::format("{}", last_id_), .name = "end", .data = "{}"}};
  }
  const uint64_t version = hub_.version(job_id_);
  auto event = Read();
  // The job is gone, or the database is away: the browser comes back with its last event.
  if (!event.ok()) return std::nullopt;
  if (event->has_value()) return std::vector<ServerEvent>{**std::move(event)};
  hub_.Wait(job_id_, version, std::min(most, kLook));
  return std::vector<ServerEvent>();
}

StatusOr<EventStream> OpenJobEvents(Pages& pages, const EventHub& hub, const HttpRequest& request) {
  KILN_ASSIGN_OR_RETURN(const int64_t after, AfterOf(request));
  const std::string job_id = request.stars.empty() ? "" : request.stars[0];
  KILN_RETURN_IF_ERROR(pages.store().GetJob(job_id).status());
  const auto events = std::make_shared<JobEvents>(pages, hub, job_id, after);
  return EventStream([events](absl::Duration most) { return events->Next(most); });
}

}  // namespace kiln::scheduler
