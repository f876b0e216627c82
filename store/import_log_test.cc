#include "store/import_log.h"

#include <fstream>
#include <sstream>

#include "base/status_testing.h"
#include "store/folder_testing.h"
#include "store/measure_log.h"
#include "store/memory_store.h"
#include "store/record_testing.h"
#include "store/sqlite_store.h"

namespace kiln::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const LogChecks kNone = {.steps = [](std::string_view) { return OkStatus(); },
                         .fits = [](std::string_view, std::string_view) { return OkStatus(); }};

StatusOr<std::string> Export(Store& store, const RecordFilter& filter) {
  std::string text;
  KILN_RETURN_IF_ERROR(ExportLog(store, filter, [&](std::string_view line) {
                         text += line;
                         return OkStatus();
                       }).status());
  return text;
}

TEST(ImportLog, ARealLogComesOutAsItWentInAndASecondTimeAddsNothing) {
  const std::string text = ReadFile("store/testdata/resnet-18-NHWC-B1-cuda.json");
  TestFolder folder;
  ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteStore(folder.File("kiln.db")));
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, text, 123, kNone));
  EXPECT_EQ(first.imported, 24);
  EXPECT_EQ(first.duplicates, 0);
  EXPECT_THAT(first.errors, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const ImportResult second, ImportLog(*store, text, 456, kNone, "other"));
  EXPECT_EQ(second.imported, 0);
  EXPECT_EQ(second.duplicates, 24);
  ASSERT_OK_AND_ASSIGN(const std::string exported, Export(*store, {}));
  EXPECT_EQ(exported, text);
  ASSERT_OK_AND_ASSIGN(const JobRow job, store->GetJob(kImportJob));
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.created_ms, 123);
  ASSERT_OK_AND_ASSIGN(const auto unfinished, store->LoadUnfinishedJobs());
  EXPECT_THAT(unfinished, IsEmpty());
}

TEST(ImportLog, LinesWithStepsThatThereAreNotAreKeptAside) {
  const auto line = [](std::string_view steps) {
    return fmt::format(R"({{"i": [["k", "t"], [[], {}]], "r": [[1], 0, 1, 1], "v": "v0.2"}})",
                       steps);
  };
  const auto check = [](std::string_view steps) {
    return steps.find("XX") == std::string_view::npos ? OkStatus()
                                                      : InvalidArgument("unknown step tag");
  };
  auto store = NewMemoryStore();
  const std::string log = line(R"([["CI", 1]])") + "\n" + line(R"([["XX", 1]])");
  ASSERT_OK_AND_ASSIGN(const ImportResult result,
                       ImportLog(*store, log, 0, {.steps = check, .fits = kNone.fits}));
  EXPECT_EQ(result.imported, 1);
  EXPECT_THAT(result.errors, ElementsAre("line 2: its steps: unknown step tag"));
}

TEST(ImportLog, BadLinesAreNumberedAndTheRestIsTaken) {
  auto store = NewMemoryStore();
  const std::string good =
      R"({"i": [["k", "t"], [[], [["CI", 1]]]], "r": [[1], 0, 1, 1], "v": "v0.2"})";
  const std::string free =
      R"({"i": [["k", "t"], [[], [["CI", 2]]]], "r": [[0], 0, 1, 1], "v": "v0.2"})";
  ASSERT_OK_AND_ASSIGN(
      const ImportResult result,
      ImportLog(*store, "# log\n" + good + "\nnonsense\n\n" + free + "\n" + good, 0, kNone));
  EXPECT_EQ(result.imported, 1);
  EXPECT_EQ(result.duplicates, 1);
  EXPECT_THAT(result.errors, ElementsAre(HasSubstr("line 3: column 1"), HasSubstr("line 5: ")));
}

TEST(ImportLog, ManyLinesKeepTheirNumbersAcrossBatchesAndImports) {
  auto store = NewMemoryStore();
  auto lines = [](int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i) {
      text += fmt::format(
          R"({{"i": [["k", "t"], [[], [["CI", {}]]]], "r": [[1], 0, 1, 1], "v": "v0.2"}})", i);
      text += "\n";
    }
    return text;
  };
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, lines(0, 600), 0, kNone));
  EXPECT_EQ(first.imported, 600);
  ASSERT_OK_AND_ASSIGN(const ImportResult second, ImportLog(*store, lines(500, 700), 0, kNone));
  EXPECT_EQ(second.imported, 100);
  EXPECT_EQ(second.duplicates, 100);
  ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfJob(kImportJob, 0));
  ASSERT_EQ(records.size(), 700);
  for (uint32_t i = 0; i < 700; ++i) {
    EXPECT_EQ(records[i].trial, i);
    EXPECT_EQ(records[i].steps, fmt::format("[[\"CI\", {}]]", i));
  }
}

std::string LineWithCost(const std::string& key, double cost_s, int64_t timestamp_s) {
  MeasureLogLine line;
  line.workload_key = key;
  line.target = "llvm";
  line.steps_json = "[]";
  line.costs_s = {cost_s};
  line.timestamp_s = timestamp_s;
  return PrintMeasureLogLine(line) + "\n";
}

// The log has several batches: one is read while another is committed.
TEST(ImportLog, ALongLogKeepsItsOrderAndCountsItsDuplicates) {
  TestFolder folder;
  ASSERT_OK_AND_ASSIGN(auto store, OpenSqliteStore(folder.File("kiln.db")));
  constexpr int kLines = 10'000;
  std::string text;
  for (int i = 0; i < kLines; ++i) text += LineWithCost(fmt::format("k{}", i % 7), 1e-3, i);
  text += LineWithCost("k0", 1e-3, 0) + "{}\n";
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, text, 0, kNone));
  EXPECT_EQ(first.imported, kLines);
  EXPECT_EQ(first.duplicates, 1);
  EXPECT_EQ(first.refused, 1);
  ASSERT_OK_AND_ASSIGN(const ImportResult second, ImportLog(*store, text, 0, kNone));
  EXPECT_EQ(second.imported, 0);
  EXPECT_EQ(second.duplicates, kLines + 1);
  int64_t next = 0;
  ASSERT_OK(store->ForEachRecord({}, [&](const Record& record) {
    EXPECT_EQ(record.timestamp_s, next);
    EXPECT_EQ(record.trial, next++);
    return OkStatus();
  }));
  EXPECT_EQ(next, kLines);
  ASSERT_OK_AND_ASSIGN(const TrialCounts counts, store->CountTrials(kImportJob));
  EXPECT_EQ(counts.total, kLines);
}

TEST(ImportLog, OurOwnRecordsAreKnownAgain) {
  auto store = NewMemoryStore();
  JobRow job;
  job.id = "j";
  ASSERT_OK(store->AddJob(job));
  ASSERT_OK(store->AddRecord(TestRecord("j", 0, 1.23456789e-4)));
  ASSERT_OK(store->AddRecord(FailedRecord("j", 1, 4)));
  ASSERT_OK_AND_ASSIGN(const std::string best, Export(*store, {}));
  EXPECT_THAT(best, HasSubstr("[[0.000123457], 0,"));
  ASSERT_OK_AND_ASSIGN(const std::string all, Export(*store, {.include_errors = true}));
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, all, 0, kNone));
  EXPECT_EQ(result.duplicates, 2);
  EXPECT_EQ(result.imported, 0);
}

TEST(ImportLog, RecordsWithPackedInputsAreKnownAgain) {
  auto store = NewMemoryStore();
  JobRow job;
  job.id = "j";
  ASSERT_OK(store->AddJob(job));
  Record record = TestRecord("j", 0, 1e-4);
  record.workload_key = R"(["a", [4, 8], "packed"])";
  ASSERT_OK(store->AddRecord(record));
  ASSERT_OK_AND_ASSIGN(const std::string log, Export(*store, {}));
  EXPECT_THAT(log, HasSubstr(R"("[\"a\", [4, 8]]")"));
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 0, kNone));
  EXPECT_EQ(result.duplicates, 1);
}

TEST(ImportLog, AFailingWriterStopsTheExport) {
  auto store = NewMemoryStore();
  ASSERT_OK(ImportLog(*store, R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.2"})",
                      0, kNone));
  EXPECT_THAT(
      ExportLog(*store, {}, [](std::string_view) { return ResourceExhausted("disk full"); }),
      StatusIs(StatusCode::kResourceExhausted, "disk full"));
}

// The smallest of the computations with the key sets the bound on its cost.
TEST(ImportLog, CostsThatNoDeviceCanHaveAreRefused) {
  const auto store = NewMemoryStore();
  const std::string key = R"(["key", [64, 64]])";
  const Computation known[] = {{.id = "a", .key = key, .dag = "d", .flop_count = 1e12},
                               {.id = "b", .key = key, .dag = "e", .flop_count = 1e10}};
  ASSERT_OK(store->AddComputations(known));
  const std::string log = LineWithCost(key, 1e-5, 1) + LineWithCost(key, 1e-15, 2) +
                          LineWithCost(key, 1e-7, 3) + LineWithCost("other", 1e-7, 4);
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(result.imported, 2);
  EXPECT_EQ(result.refused, 2);
  ASSERT_EQ(result.errors.size(), 2u);
  EXPECT_THAT(result.errors[0],
              testing::HasSubstr("line 2: cost 1e-15 s is not plausible: expected at least 1e-09"));
  EXPECT_THAT(result.errors[1],
              testing::HasSubstr("line 3: cost 1e-07 s is not plausible: 1e+10 "));
}

// Steps fit unless they say "misfit".
const LogChecks kSomeFit = {.steps = kNone.steps,
                            .fits = [](std::string_view dag, std::string_view steps) -> Status {
                              if (steps.find("misfit") == std::string_view::npos) return OkStatus();
                              return FailedPrecondition("no schedule of {}", dag);
                            }};

std::string LineOfSteps(const std::string& steps, int64_t timestamp_s) {
  std::string line = LineWithCost("[\"f\", 8]", 1e-3, timestamp_s);
  return line.replace(line.find("[[], []]"), 8, "[[], " + steps + "]");
}

TEST(ImportLog, LinesOfABoundKeyThatFitAreOfTheComputation) {
  const auto store = NewMemoryStore();
  const Computation f = {.id = "id", .key = "[\"f\", 8]", .dag = "dag", .flop_count = 10};
  ASSERT_OK(store->BindKey(f));
  const std::string log = LineOfSteps(R"([["CI", 1]])", 1) + LineOfSteps(R"([["misfit", 1]])", 2) +
                          LineWithCost("another", 1e-3, 3) + LineOfSteps(R"([["misfit", 2]])", 4);
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 1, kSomeFit));
  EXPECT_EQ(result.imported, 4);
  EXPECT_EQ(result.fitting, 1);
  EXPECT_EQ(result.unfit, 2);
  EXPECT_EQ(result.first_unfit, "line 2: no schedule of dag");
  ASSERT_OK_AND_ASSIGN(const auto records, store->RecordsOfWorkload({.id = "id"}, ""));
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].steps, R"([["CI", 1]])");
  EXPECT_EQ(records[0].dag, "dag");
  EXPECT_EQ(records[0].flop_count, 10);
  ASSERT_OK_AND_ASSIGN(const ImportResult again, ImportLog(*store, log, 1, kSomeFit));
  EXPECT_EQ(again.duplicates, 4);
}

TEST(Bind, RecordsThatFitAreOfTheComputationFromThenOn) {
  const auto store = NewMemoryStore();
  const std::string log = LineOfSteps(R"([["CI", 1]])", 1) + LineOfSteps(R"([["misfit", 1]])", 2) +
                          LineWithCost("another", 1e-3, 3);
  ASSERT_OK(ImportLog(*store, log, 1, kSomeFit));
  const Computation f = {.id = "id", .key = "[\"f\", 8]", .dag = "dag"};
  ASSERT_OK_AND_ASSIGN(const BindResult result, BindImported(*store, f, kSomeFit.fits));
  EXPECT_EQ(result.bound, 1);
  EXPECT_EQ(result.unfit, 1);
  EXPECT_EQ(result.first_unfit, "record 2: no schedule of dag");
  ASSERT_OK_AND_ASSIGN(const BindResult again, BindImported(*store, f, kSomeFit.fits));
  EXPECT_EQ(again.bound, 0) << "they are already";
  EXPECT_EQ(store->RecordsOfWorkload({.id = "id"}, "")->size(), 1u);
  EXPECT_EQ(store->BoundTo(f.key)->value().id, "id");
}

TEST(Bind, WhereNothingFitsNothingIsBound) {
  const auto store = NewMemoryStore();
  ASSERT_OK(ImportLog(*store, LineOfSteps(R"([["misfit", 1]])", 2), 1, kSomeFit));
  const Computation f = {.id = "id", .key = "[\"f\", 8]", .dag = "dag"};
  EXPECT_THAT(BindImported(*store, f, kSomeFit.fits),
              StatusIs(StatusCode::kFailedPrecondition,
                       testing::HasSubstr("not even the one record of [\"f\", 8] fits this "
                                          "computation; record 1: no schedule of dag")));
  EXPECT_EQ(*store->BoundTo(f.key), std::nullopt);
  // A binding without records to check is accepted.
  const Computation g = {.id = "id", .key = "[\"g\", 8]", .dag = "dag"};
  ASSERT_OK_AND_ASSIGN(const BindResult result, BindImported(*store, g, kSomeFit.fits));
  EXPECT_EQ(result.bound, 0);
  EXPECT_EQ(store->BoundTo(g.key)->value().id, "id");
}

TEST(ImportLog, WhatALineSaysOfItsTaskComesOutAgain) {
  const auto store = NewMemoryStore();
  const std::string line =
      R"({"i": [["[\"k\", [8]]", "llvm -keys=cpu", [2, 64, 64, 0, 0, 0, 0, 0], "llvm -mcpu=znver4", 2, ["data", "weight"]], [[], []]], "r": [[0.001], 0, 0.5, 7], "v": "v0.6"})";
  ASSERT_OK(ImportLog(*store, line, 1, kNone));
  std::string out;
  ASSERT_OK(ExportLog(*store, {}, [&](std::string_view text) {
    out += text;
    return OkStatus();
  }));
  EXPECT_EQ(out, line + "\n");
}

TEST(ImportLog, ALineThatIsNoUtf8IsRefused) {
  const auto store = NewMemoryStore();
  ASSERT_OK_AND_ASSIGN(
      const ImportResult result,
      ImportLog(*store, LineWithCost("a\xff", 1e-3, 1) + LineWithCost("b", 1e-3, 1), 1, kNone));
  EXPECT_EQ(result.imported, 1);
  EXPECT_THAT(result.errors, ElementsAre("line 1: it is no valid UTF-8"));
}

TEST(ImportLog, ErrorsAreCountedAndTheFirstOnesKept) {
  const auto store = NewMemoryStore();
  std::string log;
  for (size_t i = 0; i < ImportResult::kMaxErrors + 500; ++i) log += "x\n";
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(result.refused, 1'500);
  EXPECT_EQ(result.errors.size(), ImportResult::kMaxErrors);
}

TEST(ImportLog, ALineThatIsTooLongIsRefusedAndTheOthersTaken) {
  const auto store = NewMemoryStore();
  const std::string log = std::string(kMaxLineBytes + 1, 'x') + "\n" + LineWithCost("k", 1e-3, 1);
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(result.imported, 1);
  EXPECT_THAT(result.errors, testing::ElementsAre("line 1: it has more than 16777216 bytes"));
}

constexpr std::string_view kAutotvmLine =
    R"({"input": ["llvm", "t", [], {}], "config": {"index": 1, "code_hash": null, "entity": []}, )"
    R"("result": [[0.5], 0, 1.0, 2.5], "version": 0.2})";

TEST(ImportLog, AnAutotvmLogComesOutAsItWentIn) {
  std::string log = ReadFile("store/testdata/autotvm.log");
  TestFolder folder;
  ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore(folder.File("kiln.db")));
  ASSERT_OK_AND_ASSIGN(const ImportResult first, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(first.imported, 6);
  EXPECT_EQ(first.autotvm, 6);
  EXPECT_EQ(first.ignored, 1) << "version 0.1";
  EXPECT_EQ(first.refused, 0);
  ASSERT_OK_AND_ASSIGN(const ImportResult again, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(again.duplicates, 6);
  std::string exported;
  ASSERT_OK_AND_ASSIGN(const int64_t lines,
                       ExportAutotvmLog(*store, {.include_errors = true}, [&](std::string_view l) {
                         exported += l;
                         return OkStatus();
                       }));
  EXPECT_EQ(lines, 6);
  const size_t begin = log.find('\n') + 1, end = log.find("{\"i\": ");
  EXPECT_EQ(exported, log.substr(begin, end - begin));
}

TEST(ImportLog, LinesOfBothKindsMayStandInOneFile) {
  const auto store = NewMemoryStore();
  const std::string log =
      fmt::format("{}\n{}{}\n", kAutotvmLine, LineWithCost("k", 1e-3, 1), kAutotvmLine);
  ASSERT_OK_AND_ASSIGN(const ImportResult result, ImportLog(*store, log, 1, kNone));
  EXPECT_EQ(result.imported, 2);
  EXPECT_EQ(result.autotvm, 1);
  EXPECT_EQ(result.duplicates, 1);
}

// A bad line is refused by its number, and the good lines around it are imported.
TEST(ImportLog, HostileLinesAreRefusedAndTheRestIsTaken) {
  const std::string good = LineWithCost("k", 1e-3, 1);
  const std::string half = LineWithCost("k", 1e-3, 2).substr(0, 40);
  const std::string deep(100'000, '[');
  const std::string utf16_line("\xff\xfe{\0\"\0i\0\"\0", 12);
  std::string nul = LineWithCost("k", 1e-3, 3);
  nul[nul.find("llvm")] = '\0';
  const struct {
    std::string what, line, why;
  } cases[] = {
      {"deep nesting", R"({"i": )" + deep, "expected"},
      {"deep steps", R"({"i": [["k", "t"], [[], )" + deep + "]", "expected"},
      {"deep arguments of autotvm", R"({"input": ["llvm", "t", )" + deep, "levels of brackets"},
      {"invalid UTF-8", "\xc3\x28", "it is no valid UTF-8"},
      {"UTF-16", utf16_line, "it is UTF-16, expected UTF-8"},
      {"NUL in a text", nul.substr(0, nul.size() - 1), "no control character"},
      {"NULs", std::string(1'000, '\0'), "expected"},
      {"a key without end", R"({"i)" + std::string(100'000, 'x'), "the closing"},
      {"a long unknown key", R"({")" + std::string(100'000, 'x') + R"(": 1})", "xxx..."},
      {"a number beyond all", R"({"r": [[1)" + std::string(10'000, '0') + "], 0, 1, 1]}",
       "range of a double"},
      {"not a number", R"({"r": [[NaN], 0, 1, 1]})", "a cost in seconds"},
      {"pickle", "llvm -mcpu=x\tgANjdHZtCg==\tgANjdHZtCg==\tgAN=\t0.2\t0.8.dev0",
       "pickle protocol"},
      {"an autotvm line without its end", std::string(kAutotvmLine.substr(0, 90)),
       "the end of the line"},
  };
  for (const auto& [what, line, why] : cases) {
    SCOPED_TRACE(what);
    const auto store = NewMemoryStore();
    ASSERT_OK_AND_ASSIGN(
        const ImportResult result,
        ImportLog(*store, good + line + "\n" + LineWithCost("k", 1e-3, 9) + half, 1, kNone));
    EXPECT_EQ(result.imported, 2);
    EXPECT_EQ(result.refused, 2);
    ASSERT_EQ(result.errors.size(), 2);
    EXPECT_THAT(result.errors[0], HasSubstr("line 2: "));
    EXPECT_THAT(result.errors[0], HasSubstr(why));
    EXPECT_LT(result.errors[0].size(), 600);
    EXPECT_THAT(result.errors[1], HasSubstr("line 4: "));
    EXPECT_THAT(result.errors[1], HasSubstr("found the end of the line"));
  }
}

}  // namespace
}  // namespace kiln::store
