// kiln records distill prints the best record of each workload as a log.
#include "store/distill.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/file/file.h"
#include "client/archive.h"
#include "client/cli/records/commands.h"
#include "client/cli/records/log_output.h"
#include "client/cli/session_flags.h"
#include "client/log_lines.h"
#include "store/autotvm_log.h"
#include "store/import_log.h"
#include "store/measure_log.h"
#include "store/shipped_file.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

struct DistillFlags {
  // Kind of the records that are taken from the session.
  std::string format = kScheduleFormat;
  // `path` is a log file; "": the session's records.
  std::string path, output;
  // True: records with steps that TVM does not have are included.
  bool extended = false;
};

Status DistillLog(const std::string& path, TvmExportFilter& for_tvm, LogOutput& output) {
  store::LogDistiller distiller;
  std::string remark;
  KILN_RETURN_IF_ERROR(VisitLog(
      path,
      [&](store::MeasureLogLine line) -> Status {
        const StatusOr<bool> takes = for_tvm.Takes(line.steps_json);
        KILN_RETURN_IF_ERROR(Annotate(takes.status(), path));
        return *takes ? distiller.Add(std::move(line)) : OkStatus();
      },
      &remark));
  PrintRemark(path, remark);
  for (const store::MeasureLogLine& line : distiller.Finish()) {
    KILN_RETURN_IF_ERROR(output.AddLine(store::PrintMeasureLogLine(line)));
  }
  return OkStatus();
}

Status DistillRecords(Archive& archive, TvmExportFilter& for_tvm, LogOutput& output) {
  store::RecordDistiller distiller;
  KILN_RETURN_IF_ERROR(archive.VisitRecords({}, [&](const v1::Record& record) -> Status {
    KILN_ASSIGN_OR_RETURN(const bool takes, for_tvm.Takes(record.steps()));
    return takes ? distiller.Add(store::RecordOf(record)) : OkStatus();
  }));
  for (const store::Record& record : distiller.Finish()) {
    KILN_RETURN_IF_ERROR(output.AddRecord(record));
  }
  return OkStatus();
}

Status AddAutotvmLines(store::AutotvmDistiller& distiller, LogOutput& output) {
  for (const store::AutotvmRecord& record : distiller.Finish()) {
    KILN_RETURN_IF_ERROR(output.AddLine(store::PrintAutotvmLine(record)));
  }
  return OkStatus();
}

Status DistillAutotvmLog(const std::string& path, LogOutput& output) {
  store::AutotvmDistiller distiller;
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  std::string line;
  for (int64_t number = 1;; ++number) {
    KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return AddAutotvmLines(distiller, output);
    if (store::IsMeasureLogComment(line)) continue;
    if (store::KindOfLogLine(line) == store::LogLineKind::kAutotvmOld) continue;
    const auto record = store::ParseAutotvmLine(line);
    KILN_RETURN_IF_ERROR(Annotate(record.status(), fmt::format("{}: line {}", path, number)));
    KILN_RETURN_IF_ERROR(distiller.Add(*record));
  }
}

Status DistillAutotvmRecords(Archive& archive, LogOutput& output) {
  store::AutotvmDistiller distiller;
  KILN_RETURN_IF_ERROR(archive.VisitAutotvmRecords(
      {}, [&](const store::AutotvmRecord& record) { return distiller.Add(record); }));
  return AddAutotvmLines(distiller, output);
}

// Returns the kind of the log's first line that is a record.
StatusOr<bool> IsAutotvmLog(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  std::string line;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return false;
    if (store::IsMeasureLogComment(line)) continue;
    return store::KindOfLogLine(line) != store::LogLineKind::kMeasureRecord;
  }
}

// Returns whether the file is one of kiln records ship. A pipe is none.
bool IsShipped(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string head(16, '\0');
  file.read(head.data(), std::ssize(head));
  return store::IsShippedFile(head);
}

// Such a file has the best records alone.
Status PrintShipped(const std::string& path, TvmExportFilter& for_tvm, LogOutput& output) {
  KILN_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  const auto records = store::ReadShippedFile(bytes);
  KILN_RETURN_IF_ERROR(Annotate(records.status(), path));
  for (const store::ShippedRecord& shipped : *records) {
    KILN_ASSIGN_OR_RETURN(const bool takes, for_tvm.Takes(shipped.record.steps));
    if (takes) KILN_RETURN_IF_ERROR(output.AddRecord(shipped.record));
  }
  return OkStatus();
}

// A log has the format of its first line.
Status Distill(const DistillFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(LogOutput output, LogOutput::Open(flags.output));
  TvmExportFilter for_tvm(flags.extended);
  if (flags.path.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
    KILN_RETURN_IF_ERROR(flags.format == kAutotvmFormat
                             ? DistillAutotvmRecords(*archive, output)
                             : DistillRecords(*archive, for_tvm, output));
  } else if (IsShipped(flags.path)) {
    KILN_RETURN_IF_ERROR(PrintShipped(flags.path, for_tvm, output));
  } else {
    KILN_ASSIGN_OR_RETURN(const bool autotvm, IsAutotvmLog(flags.path));
    KILN_RETURN_IF_ERROR(autotvm ? DistillAutotvmLog(flags.path, output)
                                 : DistillLog(flags.path, for_tvm, output));
  }
  KILN_RETURN_IF_ERROR(output.Finish());
  for_tvm.Report();
  return OkStatus();
}

}  // namespace

Run AddRecordsDistill(CLI::App& distill, SessionFlags& session) {
  const auto flags = std::make_shared<DistillFlags>();
  distill.description("the best record of each workload, as a log");
  distill.add_option(
      "file", flags->path,
      "a log, of the format of its first line, or a file of kiln records ship [the records of the "
      "database or scheduler]");
  AddFormat(distill, flags->format);
  distill.add_flag("--extended", flags->extended, "records with steps that TVM does not have, too");
  distill.add_option("-o,--output", flags->output, "write to this file [stdout]");
  session.AddPlace(distill);
  return Plain([flags](const Session& session) { return Distill(*flags, session); });
}

}  // namespace kiln::client
