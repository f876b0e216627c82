#include "client/cli/models/model_records.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/text/counted.h"
#include "base/text/units.h"
#include "base/text/utf8.h"
#include "client/archive.h"
#include "client/cli/bindings.h"
#include "client/cli/command.h"
#include "client/cli/computations.h"
#include "client/cli/session_flags.h"
#include "client/jobs/workload_source.h"
#include "client/log_lines.h"
#include "scheduler/values/computations.h"
#include "store/sqlite_store.h"

namespace kiln::client {
namespace {

Status ImportLog(const std::string& path, Archive& archive) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  KILN_ASSIGN_OR_RETURN(const v1::ImportRecordsReply reply, archive.Import(lines));
  if (const std::string remark = lines.VersionRemark(); !remark.empty())
    fmt::print(stderr, "kiln: {}: {}\n", path, Printable(remark));
  if (reply.refused() > 0) {
    fmt::print(stderr, "kiln: {}: {} refused, the first is {}\n", path,
               Counted(static_cast<int64_t>(reply.refused()), "line"),
               reply.errors_size() > 0 ? Printable(reply.errors(0)) : "not known");
  }
  return OkStatus();
}

// Adds the known computations of the logs' keys: `all`, and those of the session's jobs and
// records.
Status AddComputations(const std::string& path, std::vector<store::Computation> all, Archive& logs,
                       const Session& session) {
  std::set<std::string> keys;
  KILN_RETURN_IF_ERROR(logs.VisitRecords({}, [&](const v1::Record& record) {
    keys.insert(record.workload_key());
    return OkStatus();
  }));
  // There may be no archive.
  const auto known = session.OpenArchive();
  for (const std::string& key : known.ok() ? keys : std::set<std::string>()) {
    KILN_ASSIGN_OR_RETURN(const auto computations, ComputationsOf(key, **known));
    for (const NamedComputation& computation : computations) {
      if (!computation.dag.empty())
        all.push_back({.id = computation.id, .key = key, .dag = computation.dag});
    }
  }
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(path));
  return store->AddComputations(all);
}

}  // namespace

void AddModel(CLI::App& command, std::string& model) {
  command
      .add_option("model", model,
                  "a file that kiln model train wrote, or the name of a model that is kept")
      ->required();
}

void AddModelRecords(CLI::App& command, SessionFlags& session, ModelRecordsFlags& records) {
  RecordFilterFlags& filter = records.filter;
  command.add_option("log", records.logs,
                     "logs of auto_scheduler [the records of the database or scheduler]");
  command
      .add_option("--bind", records.bind,
                  "KEY=FILE, or KEY=OPERATOR ARGUMENTS: what a workload key of the logs stands for "
                  "(may be repeated)")
      ->allow_extra_args(false);
  command.add_option("--target", filter.target,
                     "only targets that begin with this text: llvm, cuda");
  AddRecordSelection(command, filter);
  command
      .add_option("--programs", records.programs,
                  "at most so many, shared out evenly by computation and device: of each the "
                  "fastest and others by chance")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--seed", records.seed, "of everything random")
      ->check(NotNegative())
      ->capture_default_str();
  command
      .add_option("-k", records.k, "how many of the highest scores count: recall and best of them")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  session.AddPlace(command);
}

StatusOr<RecordsToLearn> RecordsOf(const ModelRecordsFlags& flags, const Session& session) {
  RecordsToLearn records{.session = session, .request = {}, .folder = {}};
  RecordFilterFlags filter = flags.filter;
  // A model learns from failures, too.
  filter.errors = true;
  KILN_ASSIGN_OR_RETURN(records.request, RequestOf(filter, absl::ToUnixSeconds(absl::Now())));
  if (flags.logs.empty()) {
    if (flags.bind.empty()) return records;
    return InvalidArgument("--bind says what keys of a log stand for: name the log");
  }
  if (!session.scheduler.empty()) {
    return InvalidArgument(
        "a scheduler has records of its own: leave out {}, or import it with `kiln records import`",
        flags.logs[0]);
  }
  KILN_ASSIGN_OR_RETURN(records.folder, TempDir::Make("kiln-model"));
  records.session.db = records.folder->Join("logs.db");
  KILN_ASSIGN_OR_RETURN(const auto archive, records.session.OpenArchive(/*write=*/true));
  KILN_ASSIGN_OR_RETURN(const std::vector<Binding> bindings, ParseBindings(flags.bind));
  for (const Binding& binding : bindings) {
    const auto bound = Bind(binding, *archive);
    // There is no record yet that could fit.
    if (bound.status().code() != StatusCode::kFailedPrecondition)
      KILN_RETURN_IF_ERROR(bound.status());
  }
  for (const std::string& log : flags.logs) KILN_RETURN_IF_ERROR(ImportLog(log, *archive));
  std::vector<store::Computation> given;
  if (!filter.arguments.op.empty()) {
    KILN_ASSIGN_OR_RETURN(const Workload workload, LoadWorkload(filter.arguments));
    given = scheduler::UnderAllKeys(*workload.dag);
  }
  KILN_RETURN_IF_ERROR(AddComputations(records.session.db, std::move(given), *archive, session));
  return records;
}

std::string LeftOutText(const google::protobuf::RepeatedPtrField<v1::LeftOutRecords>& left_out) {
  std::string text;
  for (const v1::LeftOutRecords& one : left_out) {
    text += fmt::format("left out   {} {}; {}\n", FormatCount(static_cast<int64_t>(one.records())),
                        OneLine(one.reason()), OneLine(one.first()));
  }
  return text;
}

}  // namespace kiln::client
