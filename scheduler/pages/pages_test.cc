// Tests the answers of the pages over a store in memory, and the events of a job.
#include "scheduler/pages/pages.h"

#include <fmt/format.h>

#include <memory>

#include "base/status_testing.h"
#include "scheduler/pages/job_events.h"
#include "scheduler/pages/routes.h"
#include "scheduler/values/job_testing.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/wire/job_message.h"

namespace kiln::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PagesTest : public testing::Test {
 protected:
  PagesTest() { AddJob("j1", store::JobState::kRunning); }

  void AddJob(const std::string& id, store::JobState state, const std::string& name = "") {
    store::JobRow job;
    job.id = id;
    job.name = name;
    job.user = "ada";
    job.spec = TestJob(100).SerializeAsString();
    store::TaskRow task;
    task.job_id = id;
    task.dag = TestTask().dag();
    task.target = store::kTestTarget;
    task.workload_id = std::string(64, 'a');
    task.workload_key = store::kTestKey;
    task.description = "matmul <b>512</b>";
    ASSERT_OK(store_->AddJob(job, std::vector{task}));
    if (state == store::JobState::kQueued) return;
    ASSERT_OK(store_->UpdateJobState(id, store::JobState::kRunning, "", 1'000));
    if (state != store::JobState::kRunning) ASSERT_OK(store_->UpdateJobState(id, state, "", 2'000));
  }
  void AddTrials(const std::string& job_id, uint32_t from, uint32_t count) {
    for (uint32_t i = from; i < from + count; ++i) {
      store::Record record = i % 7 == 6 ? store::FailedRecord(job_id, i, 5)
                                        : store::TestRecord(job_id, i, 1e-3 / (1 + i));
      record.workload_id = std::string(64, 'a');
      ASSERT_OK(store_->AddRecord(record));
    }
    // The statuses that were kept are too old now.
    clock_.Advance(absl::Seconds(2));
  }

  StatusOr<v1::JobStatus> Status(const store::JobRow& job) {
    v1::JobSpec spec;
    if (!spec.ParseFromString(job.spec)) return DataLoss("no spec");
    return store::JobStatusMessage(*store_, job, spec, 10'000);
  }
  std::unique_ptr<Pages> Make(uint32_t records_at_once = 1'000) {
    Pages::Options options;
    options.read_status = [this](const store::JobRow& job) { return Status(job); };
    options.list_workers = [this] { return workers_; };
    options.clock = &clock_;
    options.records_at_once = records_at_once;
    auto pages = std::make_unique<Pages>(*store_, options);
    pages->SetSchedulerPort(9290);
    return pages;
  }
  // Answers a request as the port does.
  HttpReply Get(Pages& pages, const std::string& pattern, std::vector<std::string> stars = {},
                const std::string& name = "", const std::string& value = "") {
    HttpRequest request;
    request.stars = std::move(stars);
    if (!name.empty()) request.parameters[name] = value;
    for (const PageRoute& route : PageRoutes(pages)) {
      if (route.pattern == pattern) return route.handler(request);
    }
    ADD_FAILURE() << "no route " << pattern;
    return {};
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  FakeClock clock_;
  StatusOr<v1::ListReply> workers_ = v1::ListReply();
};

TEST_F(PagesTest, ListsTheNewestJobsFirst) {
  AddJob("j2", store::JobState::kSucceeded, "<img src=x onerror=alert(1)>");
  AddTrials("j1", 0, 10);
  const auto pages = Make();
  const auto answer = pages->Jobs(0);
  ASSERT_OK(answer);
  ASSERT_EQ((*answer)["jobs"].size(), 2u);
  EXPECT_EQ((*answer)["jobs"][0]["id"], "j2");
  EXPECT_EQ((*answer)["jobs"][0]["name"], "<img src=x onerror=alert(1)>");
  EXPECT_EQ((*answer)["jobs"][1]["trials_done"], 10);
  EXPECT_EQ((*answer)["jobs"][1]["errors"], 1);
  EXPECT_EQ((*answer)["more"], false);
  const auto first = pages->Jobs(1);
  EXPECT_EQ((*first)["jobs"].size(), 1u);
  EXPECT_EQ((*first)["more"], true);
}

// A list that would take long comes in parts, and is complete after some of them.
TEST_F(PagesTest, AnAnswerReadsOnlyAsManyStatusesAsThereIsTimeFor) {
  for (int i = 0; i < 5; ++i) AddJob(fmt::format("k{}", i), store::JobState::kSucceeded);
  Pages::Options options;
  options.clock = &clock_;
  options.read_status = [this](const store::JobRow& job) {
    if (job.state != store::JobState::kRunning) clock_.Advance(absl::Milliseconds(20));
    return Status(job);
  };
  Pages pages(*store_, options);
  int answers = 1;
  StatusOr<Json> answer = pages.Jobs(0);
  ASSERT_OK(answer);
  EXPECT_EQ((*answer)["partial"], true);
  EXPECT_EQ((*answer)["jobs"].size(), 6u);
  EXPECT_EQ((*answer)["jobs"][4]["partial"], true);
  for (; answers < 10 && (*answer)["partial"].get<bool>(); ++answers) answer = pages.Jobs(0);
  EXPECT_EQ((*answer)["partial"], false);
  EXPECT_THAT(answers, testing::AllOf(testing::Gt(1), testing::Lt(6)));
}

TEST_F(PagesTest, ShowsAJobWithTasksAndReasons) {
  AddTrials("j1", 0, 10);
  const auto pages = Make();
  const auto answer = pages->Job("j1");
  ASSERT_OK(answer);
  EXPECT_EQ((*answer)["tasks"][0]["description"], "matmul <b>512</b>");
  EXPECT_GT((*answer)["tasks"][0]["best_s"].get<double>(), 0);
  EXPECT_FALSE((*answer)["why"]["reasons"].empty());
  EXPECT_EQ((*answer)["commands"][0], "kiln watch j1");
  EXPECT_THAT(pages->Job("nothing"), StatusIs(StatusCode::kNotFound, testing::_));
}

TEST_F(PagesTest, ReadsACurveInParts) {
  AddTrials("j1", 0, 25);
  const auto pages = Make(/*records_at_once=*/10);
  StatusOr<Json> curve = pages->Curve("j1");
  ASSERT_OK(curve);
  EXPECT_EQ((*curve)["complete"], false);
  EXPECT_EQ((*curve)["read"], 10);
  EXPECT_EQ((*curve)["trials"], 25);
  ASSERT_OK(pages->Curve("j1"));
  curve = pages->Curve("j1");
  EXPECT_EQ((*curve)["complete"], true);
  EXPECT_EQ((*curve)["read"], 25);
  EXPECT_EQ((*curve)["causes"][0]["count"], 3);
  EXPECT_EQ((*curve)["causes"][0]["kind"], "wrong answer");
  EXPECT_EQ((*curve)["causes"][0]["command"], "kiln trial j1/20");
  AddTrials("j1", 25, 1);
  EXPECT_EQ((*pages->Curve("j1"))["read"], 26);
}

TEST_F(PagesTest, BeginsAnewWhenRecordsWereDeleted) {
  AddTrials("j1", 0, 10);
  const auto pages = Make();
  ASSERT_OK(pages->Curve("j1"));
  ASSERT_OK(store_->DeleteRecords(std::vector<int64_t>{1, 2, 3}));
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ((*pages->Curve("j1"))["read"], 7);
}

std::vector<int> TrialsOf(const Json& answer) {
  std::vector<int> trials;
  for (const Json& row : answer["rows"]) trials.push_back(row["trial"].get<int>());
  return trials;
}

TEST_F(PagesTest, PagesThroughTrials) {
  AddTrials("j1", 0, 103);
  const auto pages = Make();
  const auto oldest = pages->Trials("j1", "oldest", 2);
  ASSERT_OK(oldest);
  EXPECT_EQ((*oldest)["pages"], 3);
  EXPECT_THAT(TrialsOf(*oldest), ElementsAre(100, 101, 102));
  const auto newest = pages->Trials("j1", "newest", 0);
  EXPECT_THAT(TrialsOf(*newest), ElementsAre(102, 101, 100));
  const std::vector<int> best = TrialsOf(*pages->Trials("j1", "best", 0));
  ASSERT_EQ(best.size(), TrialDigest::kMostTop);
  EXPECT_EQ(best[0], 102);
  EXPECT_THAT(TrialsOf(*pages->Trials("j1", "oldest", 99)), IsEmpty());
  EXPECT_THAT(pages->Trials("j1", "worst", 0),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("found the order 'worst'")));
}

TEST_F(PagesTest, TheQueueSaysWhyEachJobWaits) {
  AddJob("q1", store::JobState::kQueued);
  const auto pages = Make();
  const auto queue = pages->Queue();
  ASSERT_OK(queue);
  ASSERT_EQ((*queue)["jobs"].size(), 1u);
  EXPECT_EQ((*queue)["jobs"][0]["id"], "q1");
  EXPECT_EQ((*queue)["jobs"][0]["why"]["reasons"][0]["kind"], "queue");
  EXPECT_EQ((*queue)["running"], 1);
}

TEST_F(PagesTest, TheFleetTellsWhyItIsNotKnown) {
  workers_->add_workers()->set_id("w1");
  const auto pages = Make();
  EXPECT_EQ(pages->Fleet()["workers"].size(), 1u);
  EXPECT_EQ(pages->Fleet()["error"], "");
  workers_ = Unavailable("the tracker at a:1 does not answer");
  clock_.Advance(absl::Seconds(2));
  EXPECT_EQ(pages->Fleet()["error"], "the tracker at a:1 does not answer");
  EXPECT_TRUE(pages->Fleet()["workers"].empty());
}

TEST_F(PagesTest, FindsRecords) {
  AddTrials("j1", 0, 120);
  const auto pages = Make();
  const auto by_id = pages->Record("2");
  ASSERT_OK(by_id);
  EXPECT_EQ((*by_id)["trial"], 1);
  EXPECT_EQ((*by_id)["description"], "matmul <b>512</b>");
  EXPECT_EQ((*by_id)["best_record"], 120);
  const auto by_name = pages->Record("j1/117");
  ASSERT_OK(by_name);
  EXPECT_EQ((*by_name)["record"], 118);
  EXPECT_THAT(pages->Record("j1/900"), StatusIs(StatusCode::kNotFound, testing::_));
  EXPECT_THAT(pages->Record("no/1"), StatusIs(StatusCode::kNotFound, testing::_));
  EXPECT_THAT(pages->Record("99999"), StatusIs(StatusCode::kNotFound, testing::_));
  EXPECT_THAT(pages->Record("x"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("JOB/TRIAL")));
}

TEST_F(PagesTest, ListsTheBestRecordsOfComputations) {
  AddTrials("j1", 0, 80);
  const auto pages = Make();
  const auto all = pages->Workloads();
  ASSERT_OK(all);
  ASSERT_EQ((*all)["rows"].size(), 1u);
  EXPECT_EQ((*all)["rows"][0]["trial"], 79);
  const auto of_one = pages->Records(std::string(64, 'a'));
  ASSERT_OK(of_one);
  EXPECT_EQ((*of_one)["rows"].size(), Pages::kMostRecords);
  EXPECT_EQ((*of_one)["rows"][0]["trial"], 79);
  EXPECT_TRUE((*pages->Records("an unknown key"))["rows"].empty());
}

TEST_F(PagesTest, RoutesAnswerOrSayWhatIsWrong) {
  AddTrials("j1", 0, 3);
  const auto pages = Make();
  EXPECT_THAT(Get(*pages, "/").body, HasSubstr("<title>Kiln</title>"));
  EXPECT_EQ(Get(*pages, "/web/*", {"app.js"}).content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(Get(*pages, "/web/*", {"none.js"}).status, 404);
  EXPECT_EQ(Json::parse(Get(*pages, "/api/about").body)["scheduler_port"], 9290);
  EXPECT_EQ(Json::parse(Get(*pages, "/api/jobs", {}, "limit", "1").body)["jobs"].size(), 1u);
  EXPECT_EQ(Get(*pages, "/api/jobs", {}, "limit", "-1").status, 400);
  EXPECT_EQ(Get(*pages, "/api/jobs", {}, "limit", "9999999999").status, 400);
  EXPECT_EQ(Get(*pages, "/api/jobs/*", {"j1"}).status, 200);
  EXPECT_EQ(Get(*pages, "/api/jobs/*", {"' OR 1=1"}).status, 404);
  EXPECT_EQ(Get(*pages, "/api/jobs/*/trials", {"j1"}, "page", "x").status, 400);
  EXPECT_EQ(Get(*pages, "/api/records/*/*", {"j1", "2"}).status, 200);
  EXPECT_EQ(Get(*pages, "/api/records/*/text/*", {"1", "cuda"}).status, 400);
  EXPECT_EQ(Get(*pages, "/api/records/*/text/*", {"1", "dag"}).status, 200);
}

// ---- events

// Returns the numbers of the trials that the events tell.
std::vector<int> Told(const std::vector<ServerEvent>& events) {
  std::vector<int> trials;
  for (const ServerEvent& event : events) {
    const Json data = Json::parse(event.data);
    if (!data.contains("points")) continue;
    for (const Json& point : data["points"]) trials.push_back(point[0].get<int>());
  }
  return trials;
}

class JobEventsTest : public PagesTest {
 protected:
  StatusOr<EventStream> Open(const std::string& last_event_id, const std::string& after = "") {
    HttpRequest request;
    request.stars = {"j1"};
    request.last_event_id = last_event_id;
    if (!after.empty()) request.parameters["after"] = after;
    return OpenJobEvents(*pages_, hub_, request);
  }

  EventHub hub_;
  std::unique_ptr<Pages> pages_ = Make();
};

TEST_F(JobEventsTest, ABrokenStreamGoesOnBehindTheLastEvent) {
  AddTrials("j1", 0, 3);
  const auto first = Open("");
  ASSERT_OK(first);
  const auto events = (*first)(absl::ZeroDuration());
  ASSERT_TRUE(events.has_value());
  ASSERT_EQ(events->size(), 1u);
  EXPECT_THAT(Told(*events), ElementsAre(0, 1, 2));
  EXPECT_EQ((*events)[0].id, "3");
  // Nothing new: an empty list, and the stream goes on.
  EXPECT_THAT(*(*first)(absl::ZeroDuration()), IsEmpty());
  AddTrials("j1", 3, 2);
  const auto second = Open("3");
  EXPECT_THAT(Told(*(*second)(absl::ZeroDuration())), ElementsAre(3, 4));
  // The first stream sees them, too.
  EXPECT_THAT(Told(*(*first)(absl::ZeroDuration())), ElementsAre(3, 4));
}

TEST_F(JobEventsTest, BeginsBehindTheRecordThatThePageHas) {
  AddTrials("j1", 0, 5);
  EXPECT_THAT(Told(*(*Open("", "4"))(absl::ZeroDuration())), ElementsAre(4));
  // The browser's own word goes before the address.
  EXPECT_THAT(Told(*(*Open("2", "4"))(absl::ZeroDuration())), ElementsAre(2, 3, 4));
}

TEST_F(JobEventsTest, TellsManyTrialsInSeveralEvents) {
  AddTrials("j1", 0, JobEvents::kMostTrials + 10);
  const auto stream = Open("");
  EXPECT_EQ(Told(*(*stream)(absl::ZeroDuration())).size(), JobEvents::kMostTrials);
  EXPECT_EQ(Told(*(*stream)(absl::ZeroDuration())).size(), 10u);
}

TEST_F(JobEventsTest, EndsAfterTheLastTrialOfAnEndedJob) {
  AddTrials("j1", 0, 2);
  ASSERT_OK(store_->UpdateJobState("j1", store::JobState::kSucceeded, "", 3'000));
  const auto stream = Open("1");
  const auto last = (*stream)(absl::ZeroDuration());
  EXPECT_THAT(Told(*last), ElementsAre(1));
  EXPECT_EQ(Json::parse((*last)[0].data)["is_final"], true);
  const auto end = (*stream)(absl::ZeroDuration());
  ASSERT_EQ(end->size(), 1u);
  EXPECT_EQ((*end)[0].name, "end");
  EXPECT_FALSE((*stream)(absl::ZeroDuration()).has_value());
}

TEST_F(JobEventsTest, RefusesWhatIsNoEventAndNoJob) {
  EXPECT_THAT(Open("abc"), StatusIs(StatusCode::kInvalidArgument, HasSubstr("'abc'")));
  HttpRequest request;
  request.stars = {"none"};
  EXPECT_THAT(OpenJobEvents(*pages_, hub_, request), StatusIs(StatusCode::kNotFound, testing::_));
}

TEST_F(JobEventsTest, EndsWithTheScheduler) {
  const auto stream = Open("");
  hub_.Close();
  EXPECT_FALSE((*stream)(absl::ZeroDuration()).has_value());
}

}  // namespace
}  // namespace kiln::scheduler
