#include "scheduler/pages/routes.h"

#include <charconv>
#include <functional>
#include <utility>

#include "base/keys/role.h"
#include "scheduler/pages/job_events.h"
#include "scheduler/pages/web_files.h"

namespace kiln::scheduler {
namespace {

using Answer = std::function<StatusOr<Json>(const HttpRequest&)>;

HttpHandler JsonOf(Answer answer) {
  return [answer = std::move(answer)](const HttpRequest& request) {
    const StatusOr<Json> json = answer(request);
    if (!json.ok()) return ErrorReply(json.status());
    return HttpReply{.content_type = "application/json; charset=utf-8", .body = TextOf(*json)};
  };
}

// Returns the number that the parameter has; 0 if it is not there.
StatusOr<uint32_t> NumberIn(const HttpRequest& request, std::string_view name) {
  const std::string text = request.Parameter(name);
  uint32_t number = 0;
  if (text.empty()) return number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("{}: found '{}', expected a number from 0", name, Bounded(text));
  }
  return number;
}

HttpReply ReplyOf(const WebFile& file) {
  return {.content_type = std::string(ContentTypeOf(file.name)),
          .body = std::string(file.text),
          .cache = "no-cache"};
}

HttpReply WebFileReply(std::string_view name) {
  const WebFile* const file = FindWebFile(name);
  if (file == nullptr) return ErrorReply(NotFound("there is no file of this name"));
  return ReplyOf(*file);
}

StatusOr<Json> TrialsAnswer(Pages& pages, const HttpRequest& request) {
  KILN_ASSIGN_OR_RETURN(const uint32_t page, NumberIn(request, "page"));
  const std::string order = request.Parameter("order");
  return pages.Trials(request.stars[0], order.empty() ? "newest" : order, page);
}

StatusOr<Json> JobsAnswer(Pages& pages, const HttpRequest& request) {
  KILN_ASSIGN_OR_RETURN(const uint32_t limit, NumberIn(request, "limit"));
  return pages.Jobs(limit);
}

StatusOr<Json> RecordsAnswer(Pages& pages, const HttpRequest& request) {
  const std::string workload = request.Parameter("workload");
  return workload.empty() ? pages.Workloads() : pages.Records(workload);
}

}  // namespace

std::vector<PageRoute> PageRoutes(Pages& pages) {
  return {
      {"/", [](const HttpRequest&) { return WebFileReply("index.html"); }},
      {"/web/*", [](const HttpRequest& request) { return WebFileReply(request.stars[0]); }},
      {"/api/about", JsonOf([&](const HttpRequest&) -> StatusOr<Json> { return pages.About(); })},
      {"/api/jobs", JsonOf([&](const HttpRequest& request) { return JobsAnswer(pages, request); })},
      {"/api/jobs/*",
       JsonOf([&](const HttpRequest& request) { return pages.Job(request.stars[0]); })},
      {"/api/jobs/*/curve",
       JsonOf([&](const HttpRequest& request) { return pages.Curve(request.stars[0]); })},
      {"/api/jobs/*/trials",
       JsonOf([&](const HttpRequest& request) { return TrialsAnswer(pages, request); })},
      {"/api/queue", JsonOf([&](const HttpRequest&) { return pages.Queue(); })},
      {"/api/fleet", JsonOf([&](const HttpRequest&) -> StatusOr<Json> { return pages.Fleet(); })},
      {"/api/records",
       JsonOf([&](const HttpRequest& request) { return RecordsAnswer(pages, request); })},
      {"/api/records/*",
       JsonOf([&](const HttpRequest& request) { return pages.Record(request.stars[0]); })},
      // JOB/TRIAL
      {"/api/records/*/*", JsonOf([&](const HttpRequest& request) {
         return pages.Record(request.stars[0] + "/" + request.stars[1]);
       })},
      {"/api/records/*/text/*", JsonOf([&](const HttpRequest& request) {
         return pages.RecordText(request.stars[0], request.stars[1], [] { return false; });
       })},
  };
}

void AddPages(Pages& pages, const EventHub& hub, HttpPort& port) {
  std::vector<PageRoute> routes = PageRoutes(pages);
  for (PageRoute& route : routes) {
    port.Handle(std::move(route.pattern), Role::kRead, std::move(route.handler));
  }
  port.HandleStream("/api/jobs/*/events", Role::kRead, [&pages, &hub](const HttpRequest& request) {
    return OpenJobEvents(pages, hub, request);
  });
}

}  // namespace kiln::scheduler
