// kiln records export, import and distill move records between databases and logs.
#include "client/cli/record_logs.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/counted.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "client/cli/bindings.h"
#include "client/cli/computations.h"
#include "client/log_lines.h"
#include "client/view/json.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/extensions.h"
#include "compiler/schedule/step.h"
#include "store/autotvm_log.h"
#include "store/distill.h"
#include "store/import_log.h"
#include "store/measure_log.h"
#include "store/wire/record_message.h"

namespace kiln::client {
namespace {

// The output of a command: a file that appears only when it is complete, or stdout.
class Output {
 public:
  static StatusOr<Output> Open(const std::string& path) {
    Output output(path);
    if (!path.empty()) {
      KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
      output.file_.emplace(std::move(file));
    }
    return output;
  }

  Status AddLine(const std::string& line) {
    ++lines_;
    if (file_.has_value()) return file_->Append(line + "\n");
    if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size() &&
        std::fputc('\n', stdout) != EOF) {
      return OkStatus();
    }
    return Unavailable("cannot write to stdout");
  }

  Status Finish() {
    if (!file_.has_value()) return OkStatus();
    KILN_RETURN_IF_ERROR(file_->Commit());
    fmt::print(stderr, "{} written to {}\n", Counted(lines_, "record"), path_);
    return OkStatus();
  }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<AtomicFile> file_;
  int64_t lines_ = 0;
};

Status AddLogLine(const store::Record& record, Output& output) {
  KILN_ASSIGN_OR_RETURN(const auto line, store::LineOfRecord(record));
  return output.AddLine(store::PrintMeasureLogLine(line));
}

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

// TVM refuses a whole log because of one step that it does not have. Records with such steps are
// left out, unless the user asks for them.
class ForTvm {
 public:
  explicit ForTvm(bool extended) : extended_(extended) {}

  // Returns whether the record is written. Counts the records that are not.
  StatusOr<bool> Takes(std::string_view steps_json) {
    // No log has a place for the parameters of kernels.
    if (handwritten::IsKernelPoint(steps_json)) {
      ++kernels_;
      return false;
    }
    if (extended_) return true;
    KILN_ASSIGN_OR_RETURN(const bool extension, schedule::HasExtension(steps_json));
    if (extension) ++left_out_;
    return !extension;
  }

  void Report() const {
    if (kernels_ > 0) {
      fmt::print(
          stderr,
          "{} left out, of hand-written kernels, which have parameters and no steps (kiln records "
          "list, kiln show)\n",
          Counted(kernels_, "record"));
    }
    if (left_out_ == 0) return;
    fmt::print(stderr,
               "{} left out, with steps that TVM does not know (docs/steps.md); --extended writes "
               "such records too\n",
               Counted(left_out_, "record"));
  }

 private:
  const bool extended_;
  int64_t left_out_ = 0, kernels_ = 0;
};

// Prints a remark about a log beside its records.
void PrintRemark(const std::string& path, const std::string& remark) {
  if (!remark.empty()) fmt::print(stderr, "kiln: {}: {}\n", path, Printable(remark));
}

// ---- export ---------------------------------------------------------------------------------

Status ExportAutotvm(const ExportFlags& flags, Archive& archive, Output& output) {
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

Status ExportSchedules(const ExportFlags& flags, Archive& archive, ForTvm& for_tvm,
                       Output& output) {
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
      KILN_RETURN_IF_ERROR(AddLogLine(line, output));
    }
    return OkStatus();
  });
}

// ---- import ---------------------------------------------------------------------------------

// Prints the result for lines whose key is bound.
void PrintBound(const v1::ImportRecordsReply& reply) {
  if (reply.fitting() + reply.unfit() == 0) return;
  const auto fitting = static_cast<int64_t>(reply.fitting());
  const auto unfit = static_cast<int64_t>(reply.unfit());
  fmt::print(stderr, "{} {} what {} key is bound to\n", Counted(fitting, "line"),
             fitting == 1 ? "fits" : "fit", fitting == 1 ? "its" : "their");
  if (unfit == 0) return;
  fmt::print(stderr, "{} {} not fit it and {} imported unbound; {}\n", Counted(unfit, "line"),
             unfit == 1 ? "does" : "do", IsOrAre(unfit), Printable(reply.first_unfit()));
}

// Copies the lines that every import would refuse, unchanged.
Status KeepRefusedLines(const std::string& path, AtomicFile& refused) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  std::string line;
  while (true) {
    KILN_ASSIGN_OR_RETURN(const bool more, lines.Next(line));
    if (!more) return OkStatus();
    if (store::IsMeasureLogComment(line)) continue;
    const auto record = store::RecordOfLogLine(line, schedule::CheckStepsText);
    if (!record.ok()) KILN_RETURN_IF_ERROR(refused.Append(line + "\n"));
  }
}

bool IsDatabase(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  std::error_code error;
  // A pipe can be read only once.
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  char head[kMagic.size()] = {};
  file.read(head, sizeof(head));
  return std::string_view(head, sizeof(head)) == kMagic;
}

Status Merge(const std::string& path, Archive& archive, bool json) {
  KILN_ASSIGN_OR_RETURN(const store::MergeResult result, archive.Merge(path));
  if (json) {
    fmt::print(
        "{{\"path\":{},\"jobs\":{},\"records\":{},\"autotvm\":{},\"duplicates\":{},"
        "\"conflicts\":{},\"first_conflict\":{}}}\n",
        JsonString(path), result.jobs, result.records, result.autotvm, result.duplicates,
        result.conflicts, JsonString(result.first_conflict));
    return OkStatus();
  }
  fmt::print(
      "{}: {} and {}{} merged into {}; there already: {}\n", path, Counted(result.jobs, "job"),
      Counted(result.records, "record"),
      result.autotvm > 0 ? fmt::format(" and {} of autotvm", FormatCount(result.autotvm)) : "",
      archive.Name(), FormatCount(result.duplicates));
  if (result.conflicts > 0) {
    fmt::print(stderr, "{}: {} left out, since {} has something else in their place; {}\n", path,
               FormatCount(result.conflicts), archive.Name(), Printable(result.first_conflict));
  }
  return OkStatus();
}

void PrintImported(const std::string& path, const v1::ImportRecordsReply& reply,
                   const Archive& archive) {
  const auto count = [](uint64_t n) { return FormatCount(static_cast<int64_t>(n)); };
  fmt::print("{} imported into {}, {} there already, {} refused\n", count(reply.imported()),
             archive.Name(), count(reply.duplicates()), count(reply.refused()));
  if (reply.autotvm() > 0) {
    fmt::print("{} of them {} of autotvm\n", count(reply.autotvm()),
               IsOrAre(static_cast<int64_t>(reply.autotvm())));
  }
  if (reply.ignored() > 0) {
    fmt::print(stderr, "{}: {} ignored, of autotvm's version 0.1, which autotvm ignores too\n",
               path, Counted(static_cast<int64_t>(reply.ignored()), "line"));
  }
}

// Imports one log. Returns the number of refused lines.
StatusOr<int64_t> ImportOne(const std::string& path, Archive& archive, bool json) {
  KILN_ASSIGN_OR_RETURN(LogLines lines, LogLines::Open(path));
  KILN_ASSIGN_OR_RETURN(const v1::ImportRecordsReply reply, archive.Import(lines));
  PrintRemark(path, lines.VersionRemark());
  if (json) {
    fmt::print("{}\n", JsonOf(reply));
  } else {
    PrintImported(path, reply, archive);
  }
  PrintBound(reply);
  for (const std::string& error : reply.errors()) {
    fmt::print(stderr, "kiln: {}: {}\n", path, Printable(error));
  }
  const auto refused = static_cast<int64_t>(reply.refused());
  if (refused > reply.errors_size()) {
    fmt::print(stderr, "kiln: {}: and {} more\n", path, FormatCount(refused - reply.errors_size()));
  }
  return refused;
}

Status KeepAllRefusedLines(const ImportFlags& flags) {
  KILN_ASSIGN_OR_RETURN(AtomicFile refused, AtomicFile::Create(flags.rejected));
  for (const std::string& path : flags.paths) {
    if (path == "-") return InvalidArgument("--rejected reads the log twice: expected a file");
    if (!IsDatabase(path)) KILN_RETURN_IF_ERROR(KeepRefusedLines(path, refused));
  }
  return refused.Commit();
}

// ---- distill --------------------------------------------------------------------------------

Status DistillLog(const std::string& path, ForTvm& for_tvm, Output& output) {
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

Status DistillRecords(Archive& archive, ForTvm& for_tvm, Output& output) {
  store::RecordDistiller distiller;
  KILN_RETURN_IF_ERROR(archive.VisitRecords({}, [&](const v1::Record& record) -> Status {
    KILN_ASSIGN_OR_RETURN(const bool takes, for_tvm.Takes(record.steps()));
    return takes ? distiller.Add(store::RecordOf(record)) : OkStatus();
  }));
  for (const store::Record& record : distiller.Finish()) {
    KILN_RETURN_IF_ERROR(AddLogLine(record, output));
  }
  return OkStatus();
}

Status AddAutotvmLines(store::AutotvmDistiller& distiller, Output& output) {
  for (const store::AutotvmRecord& record : distiller.Finish()) {
    KILN_RETURN_IF_ERROR(output.AddLine(store::PrintAutotvmLine(record)));
  }
  return OkStatus();
}

Status DistillAutotvmLog(const std::string& path, Output& output) {
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

Status DistillAutotvmRecords(Archive& archive, Output& output) {
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

}  // namespace

Status ExportCommand(const ExportFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
  KILN_ASSIGN_OR_RETURN(Output output, Output::Open(flags.output));
  ForTvm for_tvm(flags.extended);
  KILN_RETURN_IF_ERROR(flags.format == kAutotvmFormat
                           ? ExportAutotvm(flags, *archive, output)
                           : ExportSchedules(flags, *archive, for_tvm, output));
  KILN_RETURN_IF_ERROR(output.Finish());
  for_tvm.Report();
  return OkStatus();
}

Status ImportCommand(const ImportFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const std::vector<Binding> bindings, ParseBindings(flags.bind));
  if (!flags.rejected.empty()) KILN_RETURN_IF_ERROR(KeepAllRefusedLines(flags));
  // A log that does not exist makes no database.
  for (const std::string& path : flags.paths) {
    const bool is_there = path == "-" || FileExists(path);
    if (!is_there) KILN_RETURN_IF_ERROR(LogLines::Open(path).status());
  }
  KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive(/*write=*/true));
  for (const Binding& binding : bindings) {
    KILN_RETURN_IF_ERROR(Bind(binding, *archive).status());
  }
  int64_t refused = 0;
  std::string where;
  for (const std::string& path : flags.paths) {
    if (IsDatabase(path)) {
      KILN_RETURN_IF_ERROR(Merge(path, *archive, session.json));
      continue;
    }
    KILN_ASSIGN_OR_RETURN(const int64_t of_log, ImportOne(path, *archive, session.json));
    if (of_log > 0) where += (where.empty() ? "" : ", ") + path;
    refused += of_log;
  }
  if (refused == 0) return OkStatus();
  return InvalidArgument(
      "{}: {} refused, the others are imported{}", where, Counted(refused, "line"),
      flags.rejected.empty() ? "" : fmt::format("; {} has what was refused", flags.rejected));
}

Status DistillCommand(const DistillFlags& flags, const Session& session) {
  KILN_ASSIGN_OR_RETURN(Output output, Output::Open(flags.output));
  ForTvm for_tvm(flags.extended);
  if (flags.path.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto archive, session.OpenArchive());
    KILN_RETURN_IF_ERROR(flags.format == kAutotvmFormat
                             ? DistillAutotvmRecords(*archive, output)
                             : DistillRecords(*archive, for_tvm, output));
  } else {
    KILN_ASSIGN_OR_RETURN(const bool autotvm, IsAutotvmLog(flags.path));
    KILN_RETURN_IF_ERROR(autotvm ? DistillAutotvmLog(flags.path, output)
                                 : DistillLog(flags.path, for_tvm, output));
  }
  KILN_RETURN_IF_ERROR(output.Finish());
  for_tvm.Report();
  return OkStatus();
}

}  // namespace kiln::client
