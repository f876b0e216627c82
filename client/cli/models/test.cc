// kiln model test measures how well a cost model ranks records.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/console/terminal.h"
#include "base/text/counted.h"
#include "client/cli/models/commands.h"
#include "client/cli/models/model_records.h"
#include "client/cli/models/model_text.h"
#include "client/cli/session_flags.h"
#include "client/jobs/model_source.h"
#include "client/models.h"
#include "costmodel/model_file.h"

namespace kiln::client {
namespace {

struct TestModelFlags {
  std::string model;
  ModelRecordsFlags records;
};

Status TestModel(const TestModelFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(NamedOrFile model, ParseModelSource(flags.model));
  KILN_ASSIGN_OR_RETURN(const RecordsToLearn records, RecordsOf(flags.records, session));
  // A kept model is the session's, whatever records test it.
  if (model.bytes.empty() && records.folder.has_value()) {
    KILN_ASSIGN_OR_RETURN(const auto kept, session.OpenModels());
    KILN_ASSIGN_OR_RETURN(model.bytes, kept->Get(model.name));
  }
  KILN_ASSIGN_OR_RETURN(const auto models, records.session.OpenModels());
  v1::TestModelRequest request;
  *request.mutable_records() = records.request;
  request.set_programs(flags.records.programs);
  request.set_seed(flags.records.seed);
  request.set_k(flags.records.k);
  KILN_ASSIGN_OR_RETURN(const v1::TestModelReply reply, models->Test(model, request));
  const std::vector<v1::ModelQuality> tasks(reply.tasks().begin(), reply.tasks().end());
  fmt::print(stderr, "{}", session.json ? "" : LeftOutText(reply.left_out()));
  if (tasks.empty()) {
    return NotFound("of {} no task has {} programs that worked: nothing can be ranked",
                    Counted(static_cast<int64_t>(reply.records()), "record"),
                    costmodel::kMinRanked);
  }
  if (session.json) {
    for (const v1::ModelQuality& task : tasks) fmt::print("{}\n", QualityJson(task));
    return OkStatus();
  }
  const int k = static_cast<int>(flags.records.k);
  fmt::print("{}\nmean of {}: {}\n", QualityTable(tasks, k, OutputColumns(STDOUT_FILENO)),
             Counted(std::ssize(tasks), "task"), QualityText(MeanQuality(tasks), k));
  return OkStatus();
}

}  // namespace

Run AddModelTest(CLI::App& test, SessionFlags& session) {
  const auto flags = std::make_shared<TestModelFlags>();
  test.description("how well a model ranks records");
  AddModel(test, flags->model);
  AddModelRecords(test, session, flags->records);
  return Plain([flags](const Session& session) { return TestModel(*flags, session); });
}

}  // namespace kiln::client
