#include "client/cli/records/log_output.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/text/counted.h"
#include "base/text/utf8.h"
#include "compiler/handwritten/kernel_point.h"
#include "compiler/schedule/extensions.h"
#include "store/import_log.h"
#include "store/measure_log.h"

namespace kiln::client {

void AddFormat(CLI::App& command, std::string& format) {
  command
      .add_option("--format", format,
                  "auto_scheduler: schedules; autotvm: what was imported from its logs")
      ->check(CLI::IsMember({kScheduleFormat, kAutotvmFormat}))
      ->capture_default_str();
}

StatusOr<LogOutput> LogOutput::Open(const std::string& path) {
  LogOutput output(path);
  if (!path.empty()) {
    KILN_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
    output.file_.emplace(std::move(file));
  }
  return output;
}

Status LogOutput::AddLine(const std::string& line) {
  ++lines_;
  if (file_.has_value()) return file_->Append(line + "\n");
  if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size() &&
      std::fputc('\n', stdout) != EOF) {
    return OkStatus();
  }
  return Unavailable("cannot write to stdout");
}

Status LogOutput::AddRecord(const store::Record& record) {
  KILN_ASSIGN_OR_RETURN(const auto line, store::LineOfRecord(record));
  return AddLine(store::PrintMeasureLogLine(line));
}

Status LogOutput::Finish() {
  if (!file_.has_value()) return OkStatus();
  KILN_RETURN_IF_ERROR(file_->Commit());
  fmt::print(stderr, "{} written to {}\n", Counted(lines_, "record"), path_);
  return OkStatus();
}

StatusOr<bool> TvmExportFilter::Takes(std::string_view steps_json) {
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

void TvmExportFilter::Report() const {
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

void PrintRemark(const std::string& path, const std::string& remark) {
  if (!remark.empty()) fmt::print(stderr, "kiln: {}: {}\n", path, Printable(remark));
}

}  // namespace kiln::client
