#include "client/cli/model_source.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <set>
#include <utility>

#include "absl/time/clock.h"
#include "base/counted.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/bindings.h"
#include "client/cli/computations.h"
#include "client/local_archive.h"
#include "client/log_lines.h"
#include "client/view/printable.h"
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

StatusOr<NamedOrFile> ParseModelSource(const std::string& model) {
  if (!FileExists(model)) return NamedOrFile{.name = model, .bytes = {}};
  KILN_ASSIGN_OR_RETURN(std::string bytes, ReadFile(model, costmodel::kMostModelFileBytes));
  if (bytes.empty()) return DataLoss("{} is empty, expected a cost model", model);
  return NamedOrFile{.name = {}, .bytes = std::move(bytes)};
}

StatusOr<costmodel::ModelFile> ReadModelSource(const std::string& model, const Session& session) {
  KILN_ASSIGN_OR_RETURN(NamedOrFile source, ParseModelSource(model));
  if (source.bytes.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
    auto bytes = models->Get(source.name);
    if (bytes.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no file {} and no cost model of that name in {}", model,
                      models->Name());
    }
    KILN_ASSIGN_OR_RETURN(source.bytes, std::move(bytes));
  }
  auto file = costmodel::ParseModelFile(source.bytes);
  if (!file.ok()) return Annotate(file.status(), model);
  return file;
}

StatusOr<std::map<std::string, double>> ParseParameters(const std::vector<std::string>& texts) {
  std::map<std::string, double> parameters;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const char* const end = text.data() + text.size();
    double value = 0;
    const auto [at, error] = std::from_chars(
        text.data() + (equals == std::string::npos ? text.size() : equals + 1), end, value);
    if (equals == std::string::npos || equals == 0 || error != std::errc() || at != end) {
      return InvalidArgument("'{}' is no parameter: expected NAME=NUMBER, for instance max_depth=8",
                             text);
    }
    parameters[text.substr(0, equals)] = value;
  }
  return parameters;
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

std::string KindText(const costmodel::ModelInfo& info) {
  return info.kind +
         (info.calibration.empty() ? ", trees alone" : " over estimates of the analytic model");
}

}  // namespace kiln::client
