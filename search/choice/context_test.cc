#include "search/choice/context.h"

#include "compiler/dag/packed_inputs.h"
#include "compiler/dag/text.h"
#include "search/choice/context_testing.h"
#include "store/memory_store.h"

namespace kiln::search {
namespace {

using testing::HasSubstr;

std::shared_ptr<Context> EmptyHistory(std::shared_ptr<Context> outer, HistoryOptions options) {
  static store::Store& store = *store::NewMemoryStore().release();
  static StoreRecords& records = *new StoreRecords(store);
  return std::make_shared<HistoryBest>(records, options, std::move(outer));
}

INSTANTIATE_TEST_SUITE_P(
    Contexts, ContextConformance,
    testing::Values(
        ContextCase{"history", [](auto outer) { return EmptyHistory(outer, {}); }},
        ContextCase{"compatible history",
                    [](auto outer) { return EmptyHistory(outer, {.include_compatible = true}); }},
        ContextCase{"fixed for another computation",
                    [](auto outer) {
                      return std::make_shared<FixedSchedule>(
                          kTilesOf4, std::set<std::string>{"another"}, outer);
                    }},
        ContextCase{"fixed",
                    [](auto outer) {
                      return std::make_shared<FixedSchedule>("[]", std::set<std::string>{}, outer);
                    },
                    true, true},
        ContextCase{"sample", [](auto) { return std::make_shared<SampledSchedule>(1); }, false,
                    true},
        ContextCase{"fallback", [](auto) { return std::make_shared<Fallback>(); }, false}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

class HistoryTest : public testing::Test {
 protected:
  // Returns the record's number.
  int64_t Add(const Task& task, double cost_s, const std::string& steps = "[]",
              const std::string& measured_as = "") {
    const std::string job = "j" + std::to_string(jobs_++);
    store::TaskRow row;
    row.job_id = job;
    row.workload_id = dag::WorkloadId(*task.dag);
    row.workload_key = dag::WorkloadKey(*task.dag);
    row.dag = dag::PrintDag(*task.dag);
    row.target = target::PrintTarget(task.target);
    row.description = "a product";
    EXPECT_OK(store_->AddJob({.id = job}, {&row, 1}));
    store::Record record;
    record.job_id = job;
    record.workload_id = row.workload_id;
    record.workload_key = row.workload_key;
    record.dag = row.dag;
    record.target = row.target;
    record.steps = steps;
    record.costs_s = {cost_s};
    record.device = "a device";
    record.measured_as = measured_as;
    const auto id = store_->AddRecord(record);
    EXPECT_OK(id.status());
    return id.value_or(0);
  }

  Choice Ask(const Task& task, HistoryOptions options = {},
             std::shared_ptr<Context> outer = nullptr) {
    StoreRecords records(*store_);
    HistoryBest context(records, options, std::move(outer));
    auto choice = context.Query(task);
    EXPECT_OK(choice.status());
    return *std::move(choice);
  }

  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  int jobs_ = 0;
};

TEST_F(HistoryTest, IsTheBestRecordForATargetThatMeansTheSame) {
  Add(MatmulTask("16,16,16"), 3e-6);
  const int64_t best = Add(MatmulTask("16,16,16", "llvm -keys=cpu -mcpu=znver4"), 2e-6, kTilesOf4);
  Add(MatmulTask("16,16,16", "llvm -mcpu=haswell"), 1e-6);
  Add(MatmulTask("16,16,8"), 1e-6);
  const Choice choice = Ask(MatmulTask("16,16,16"));
  EXPECT_EQ(choice.source, ChoiceSource::kRecord);
  EXPECT_EQ(choice.record, std::to_string(best));
  EXPECT_EQ(choice.steps, kTilesOf4);
  EXPECT_EQ(choice.cost_s, 2e-6);
  EXPECT_EQ(choice.device, "a device");
}

TEST_F(HistoryTest, CostsOfDifferentWaysOfMeasuringAreNotCompared) {
  const Task task = MatmulTask("16,16,16"),
             alike = MatmulTask("16,16,16", "llvm -keys=cpu -mcpu=znver4");
  const int64_t stream = Add(task, 9e-6, "[]", "stream/warm/free");
  const int64_t slower_graph = Add(task, 5e-6, "[]", "graph/warm/free");
  const int64_t graph = Add(alike, 4e-6, kTilesOf4, "graph/warm/free");
  EXPECT_EQ(Ask(task).record, std::to_string(stream)) << "single launches go first";
  EXPECT_EQ(Ask(task).measured_as, "stream/warm/free");
  EXPECT_EQ(Ask(task, {.as_deployed = "stream"}).record, std::to_string(stream));
  EXPECT_EQ(Ask(task, {.as_deployed = "graph"}).record, std::to_string(graph));
  EXPECT_NE(slower_graph, graph);
  // The same holds for records of other computations.
  const HistoryOptions compatible = {.include_compatible = true};
  Add(MatmulTask("16,64,64"), 1e-6, "[]", "graph/warm/free");
  const int64_t far = Add(MatmulTask("16,64,64"), 5e-6, "[]", "stream/warm/free");
  EXPECT_EQ(Ask(MatmulTask("64,64,64"), compatible).record, std::to_string(far));
}

TEST_F(HistoryTest, AComputationThatWasNotMeasuredAsItIsDeployedIsRefused) {
  const Task task = MatmulTask("16,16,16");
  StoreRecords records(*store_);
  HistoryBest context(records, {.include_compatible = true, .as_deployed = "stream"},
                      std::make_shared<SampledSchedule>(1));
  EXPECT_THAT(context.Query(task),
              StatusIs(StatusCode::kNotFound, HasSubstr("has no record for llvm -mcpu=znver4")));
  Add(task, 9e-6, "[]", "graph/warm/free");
  Add(task, 9e-6);
  EXPECT_THAT(
      context.Query(task),
      StatusIs(StatusCode::kFailedPrecondition,
               HasSubstr("measured as stream, only graph/warm/free, in an unknown way: tune it")));
  const std::string id = dag::WorkloadId(*task.dag);
  ASSERT_OK(
      store_->PinSchedule({.workload_id = id, .target = "llvm -mcpu=znver4", .steps = kTilesOf4}));
  ASSERT_OK_AND_ASSIGN(const Choice set, context.Query(task));
  EXPECT_EQ(set.source, ChoiceSource::kSet) << "what somebody has set needs no measurement";
}

// An imported record names its computation by the key alone, as long as no job knows the key.
TEST_F(HistoryTest, RecordsOfLogsAreFoundByTheirKey) {
  Task packed = MatmulTask("16,16,16");
  packed.dag = dag::PackInputs(packed.dag, [](int) { return true; });
  ASSERT_OK(store_->AddJob({.id = "import"}, {}));
  uint32_t trials = 0;
  for (const Task& task : {MatmulTask("16,16,16"), packed}) {
    store::Record record;
    record.job_id = "import";
    record.trial = trials++;
    record.workload_key = dag::WorkloadKey(*task.dag);
    record.target = target::PrintTarget(task.target);
    record.steps = R"([["SP", 9, 0, 16, [4], 1]])";
    record.costs_s = {1e-6};
    ASSERT_OK(store_->AddRecord(record).status());
    EXPECT_EQ(Ask(task).source, ChoiceSource::kNone) << "the steps are of another computation";
    record.trial = trials++;
    record.target = "llvm -keys=cpu -mcpu=znver4";
    record.steps = kTilesOf4;
    record.costs_s = {2e-6};
    ASSERT_OK_AND_ASSIGN(const int64_t fitting, store_->AddRecord(record));
    EXPECT_EQ(Ask(task).source, ChoiceSource::kRecord);
    EXPECT_EQ(Ask(task).record, std::to_string(fitting));
    EXPECT_EQ(Ask(task).steps, kTilesOf4);
  }
}

// Knows these records of every computation.
class FixedRecords final : public KnownRecords {
 public:
  explicit FixedRecords(std::vector<store::Record> records) : records_(std::move(records)) {}
  StatusOr<std::vector<store::Record>> Best(const store::WorkloadRef&) override { return records_; }
  StatusOr<std::vector<KnownComputation>> WithHash(std::string_view) override {
    return std::vector<KnownComputation>();
  }
  StatusOr<std::vector<store::PinnedSchedule>> Set(const std::string&) override {
    return std::vector<store::PinnedSchedule>();
  }
  Status Visit(const std::string&, const std::function<Status(const store::Record&)>&) override {
    return OkStatus();
  }

 private:
  const std::vector<store::Record> records_;
};

// A stopped task cannot be lowered, so the answer tells which records were.
TEST(HistoryBestTest, OnlyARecordThatWouldBeTheBestIsLowered) {
  Task task = MatmulTask("16,16,16");
  std::stop_source stopped;
  stopped.request_stop();
  task.stop = stopped.get_token();
  store::Record of_job, of_log;
  of_job.dag = dag::PrintDag(*task.dag);
  of_job.costs_s = {2e-6};
  of_log.costs_s = {3e-6};
  for (store::Record* record : {&of_job, &of_log}) {
    record->target = target::PrintTarget(task.target);
    record->steps = kTilesOf4;
  }
  FixedRecords slower({of_job, of_log});
  ASSERT_OK_AND_ASSIGN(const Choice choice, HistoryBest(slower, {}).Query(task));
  EXPECT_EQ(choice.source, ChoiceSource::kRecord);
  EXPECT_EQ(choice.cost_s, 2e-6);
  of_log.costs_s = {1e-6};
  FixedRecords faster({of_job, of_log});
  EXPECT_EQ(HistoryBest(faster, {}).Query(task).status().code(), StatusCode::kCancelled)
      << "the stop is no reason to take another record";
  EXPECT_EQ(FixedSchedule(kTilesOf4).Query(task).status().code(), StatusCode::kCancelled);
}

TEST_F(HistoryTest, PinnedSchedulesComeBeforeRecords) {
  Add(MatmulTask("16,16,16"), 3e-6);
  const std::string id = dag::WorkloadId(*MatmulTask("16,16,16").dag);
  ASSERT_OK(
      store_->PinSchedule({.workload_id = id, .target = "llvm -mcpu=haswell", .steps = kTilesOf2}));
  EXPECT_EQ(Ask(MatmulTask("16,16,16")).source, ChoiceSource::kRecord);
  ASSERT_OK(
      store_->PinSchedule({.workload_id = id, .target = "llvm -mcpu=znver4", .steps = kTilesOf4}));
  const Choice choice = Ask(MatmulTask("16,16,16"));
  EXPECT_EQ(choice.source, ChoiceSource::kSet);
  EXPECT_EQ(choice.steps, kTilesOf4);
  EXPECT_EQ(choice.record, "");
}

TEST_F(HistoryTest, ACompatibleRecordIsThatOfTheLeastCostTimesDistance) {
  const HistoryOptions compatible = {.include_compatible = true};
  Add(MatmulTask("64,64,64", "cuda -arch=sm_90"), 1e-6);  // a target of another kind
  const int64_t haswell = Add(MatmulTask("64,64,64", "llvm -mcpu=haswell"), 5e-5);
  Add(MatmulTask("64,64,48"), 1e-6);  // 64 is no multiple of 48
  EXPECT_EQ(Ask(MatmulTask("64,64,64")).source, ChoiceSource::kNone);
  Choice choice = Ask(MatmulTask("64,64,64"), compatible);
  EXPECT_EQ(choice.source, ChoiceSource::kCompatible);
  EXPECT_EQ(choice.record, std::to_string(haswell));
  EXPECT_EQ(choice.reused_from, "a product for llvm -mcpu=haswell");
  EXPECT_EQ(choice.cost_s, 0) << "nobody knows what it costs here";

  // The keys of matrix products list the extents of the tensors: M and K of A, N and K of B, M and
  // N.
  const int64_t four = Add(MatmulTask("32,64,64"), 1e-5);  // 4 times as far
  Add(MatmulTask("16,64,64"), 9e-6);                       // 16 times
  choice = Ask(MatmulTask("64,64,64"), compatible);
  EXPECT_EQ(choice.record, std::to_string(four));
  EXPECT_EQ(choice.distance, 4);
  EXPECT_EQ(Ask(MatmulTask("8,64,64"), compatible).source, ChoiceSource::kNone)
      << "smaller ones are at no distance";
}

TEST_F(HistoryTest, NestedContextsAreAskedFromTheInsideOut) {
  const auto task = MatmulTask("16,16,16");
  const auto outermost = std::make_shared<SampledSchedule>(1);
  const auto fixed = std::make_shared<FixedSchedule>(
      kTilesOf4, std::set<std::string>{dag::WorkloadId(*task.dag)}, outermost);
  EXPECT_EQ(Ask(task, {}, fixed).steps, kTilesOf4);
  const Choice sampled = Ask(MatmulTask("16,16,32"), {}, fixed);
  EXPECT_EQ(sampled.source, ChoiceSource::kSample);
  EXPECT_NE(sampled.origin, "");
  EXPECT_GT(sampled.predicted_s, 0);
  Add(task, 1e-6);
  EXPECT_EQ(Ask(task, {}, fixed).source, ChoiceSource::kRecord);
}

TEST_F(HistoryTest, BestOrSampleHasAnAnswerToEverything) {
  StoreRecords records(*store_);
  const auto context = HistoryBestOrSample(records, 1);
  ASSERT_OK_AND_ASSIGN(Choice choice, context->Query(MatmulTask("32,16,16")));
  EXPECT_EQ(choice.source, ChoiceSource::kSample);
  ASSERT_OK(context->Update(MatmulTask("32,16,16"), choice.steps));
  Add(MatmulTask("32,16,16"), 1e-6);
  ASSERT_OK_AND_ASSIGN(choice, context->Query(MatmulTask("32,16,16")));
  EXPECT_EQ(choice.source, ChoiceSource::kSet);
}

TEST_F(HistoryTest, OfPackedAndPlainInputsTheFasterRecord) {
  const Task plain = MatmulTask("16,16,16");
  Task packed = plain;
  packed.dag = dag::PackInputs(plain.dag, [](int) { return true; });
  ASSERT_NE(packed.dag, plain.dag);
  StoreRecords records(*store_);
  HistoryBest context(records, {});
  const auto faster = [&](const Task& task) { return *FasterOf(task, context); };
  EXPECT_EQ(faster(packed).dag, packed.dag);
  EXPECT_EQ(faster(packed).schedule.source, ChoiceSource::kNone);
  const int64_t first = Add(plain, 2e-6);
  EXPECT_EQ(dag::WorkloadId(*faster(packed).dag), dag::WorkloadId(*plain.dag));
  EXPECT_EQ(faster(packed).schedule.record, std::to_string(first));
  Add(packed, 3e-6);
  EXPECT_EQ(faster(packed).schedule.record, std::to_string(first));
  const int64_t third = Add(packed, 1e-6);
  EXPECT_EQ(faster(packed).schedule.record, std::to_string(third));
  EXPECT_EQ(faster(packed).dag, packed.dag);
  EXPECT_EQ(faster(plain).schedule.record, std::to_string(first))
      << "that of a computation whose inputs are not known";
}

TEST_F(HistoryTest, OfPackedAndPlainInputsThatWereMeasuredInTwoWaysTheFirstWay) {
  const Task plain = MatmulTask("16,16,16");
  Task packed = plain;
  packed.dag = dag::PackInputs(plain.dag, [](int) { return true; });
  StoreRecords records(*store_);
  HistoryBest context(records, {});
  const int64_t stream = Add(plain, 9e-6, "[]", "stream/warm/free");
  Add(packed, 1e-6, "[]", "graph/warm/free");
  ASSERT_OK_AND_ASSIGN(const ScheduledDag chosen, FasterOf(packed, context));
  EXPECT_EQ(chosen.schedule.record, std::to_string(stream));
}

TEST(FixedScheduleTest, StepsThatDoNotApplyAreNoAnswer) {
  FixedSchedule applies(kTilesOf4), does_not("[[\"SP\", 2, 5, 16, [4], 1]]");
  ASSERT_OK_AND_ASSIGN(const Choice choice, applies.Query(MatmulTask("16,16,16")));
  EXPECT_EQ(choice.steps, kTilesOf4);
  ASSERT_OK_AND_ASSIGN(const Choice none, does_not.Query(MatmulTask("16,16,16")));
  EXPECT_EQ(none.source, ChoiceSource::kNone);
}

}  // namespace
}  // namespace kiln::search
