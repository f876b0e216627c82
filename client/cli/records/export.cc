// kiln records export prints records as lines of a log.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "client/archive.h"
#include "client/cli/computations.h"
#include "client/cli/records/commands.h"
#include "client/cli/records/log_output.h"
#include "client/cli/session_flags.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "store/autotvm_log.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

struct ExportFlags {
  std::string format = kScheduleFormat;
  // `output` "": stdout.
  std::string job, workload, output;
  bool errors = false;
  // True: records with steps that TVM does not have are included.
  bool extended = false;
  // True: a line for each key that logs have for the computation.
  bool all_keys = false;
};

// Returns all keys of the record, its own key first.
std::vector<std::string> KeysOf(const v1::Record& record) {
  std::vector<std::string> keys = {record.workload_key()};
  const auto dag = dag::ParseDag(record.dag());
  if (!dag.ok()) return keys;
  for (std::string& key : dag::WorkloadKeys(**dag)) {
    if (key != record.workload_key()) keys.push_back(std::move(key));
  }
  return keys;
}

Status ExportAutotvm(const ExportFlags& flags, Archive& archive, LogOutput& output) {
  if (!flags.job.empty() || flags.extended || flags.all_keys) {
    return InvalidArgument(
        "records of autotvm are of no job and have no steps or keys: --format autotvm goes with "
        "--workload (a template's name), --errors and --output");
  }
  v1::ListAutotvmRecordsRequest request;
  request.set_task(flags.workload);
  request.set_include_errors(flags.errors);
  return archive.VisitAutotvmRecords(request, [&](const store::AutotvmRecord& record) {
    return output.AddLine(store::PrintAutotvmLine(record));
  });
}

Status ExportSchedules(const ExportFlags& flags, Archive& archive, TvmExportFilter& for_tvm,
                       LogOutput& output) {
  if (!flags.job.empty()) KILN_RETURN_IF_ERROR(archive.Job(flags.job).status());
  v1::ListRecordsRequest request;
  request.set_job_id(flags.job);
  if (IsWorkloadId(flags.workload)) {
    request.set_workload_id(flags.workload);
  } else if (!flags.workload.empty()) {
    request.add_workload_keys(dag::NormalizedKey(flags.workload));
  }
  request.set_include_errors(flags.errors);
  return archive.VisitRecords(request, [&](const v1::Record& record) -> Status {
    KILN_ASSIGN_OR_RETURN(const bool takes, for_tvm.Takes(record.steps()));
    if (!takes) return OkStatus();
    store::Record line = store::RecordOf(record);
    const std::vector<std::string> keys =
        flags.all_keys ? KeysOf(record) : std::vector{record.workload_key()};
    for (const std::string& key : keys) {
      line.workload_key = key;
      KILN_RETURN_IF_ERROR(output.AddRecord(line));
    }
    return OkStatus();
  });
}

Status Export(const ExportFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(LogOutput output, LogOutput::Open(flags.output));
  TvmExportFilter for_tvm(flags.extended);
  KILN_RETURN_IF_ERROR(flags.format == kAutotvmFormat
                           ? ExportAutotvm(flags, *archive, output)
                           : ExportSchedules(flags, *archive, for_tvm, output));
  KILN_RETURN_IF_ERROR(output.Finish());
  for_tvm.Report();
  return OkStatus();
}

}  // namespace

Run AddRecordsExport(CLI::App& out, SessionFlags& session) {
  const auto flags = std::make_shared<ExportFlags>();
  out.description("print records as lines of a log");
  AddFormat(out, flags->format);
  out.add_option("--job", flags->job, "only of this job");
  out.add_option("--workload", flags->workload,
                 "only of this workload key, or of autotvm's template of this name");
  out.add_flag("--errors", flags->errors, "failed trials too");
  out.add_flag("--extended", flags->extended, "records with steps that TVM does not have, too");
  out.add_flag("--all-keys", flags->all_keys,
               "a line for each key that versions of TVM have for the computation");
  out.add_option("-o,--output", flags->output, "write to this file [stdout]");
  session.AddPlace(out);
  return Plain([flags](const Session& session) { return Export(*flags, session); });
}

}  // namespace kiln::client
