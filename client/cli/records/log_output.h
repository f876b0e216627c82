// Shared by kiln records export, import and distill: the log that they write, and the records that
// a log has no place for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file/file.h"
#include "base/status.h"
#include "store/record.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Values of --format.
inline constexpr const char* kScheduleFormat = "auto_scheduler";
inline constexpr const char* kAutotvmFormat = "autotvm";
void AddFormat(CLI::App& command, std::string& format);

// The output of a command: a file that appears only when it is complete, or stdout.
class LogOutput {
 public:
  // "": stdout.
  static StatusOr<LogOutput> Open(const std::string& path);

  Status AddLine(const std::string& line);
  Status AddRecord(const store::Record& record);
  // Commits the file, and reports the number of its lines on stderr.
  Status Finish();

 private:
  explicit LogOutput(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::optional<AtomicFile> file_;
  int64_t lines_ = 0;
};

// TVM refuses a whole log because of one step that it does not have. Records with such steps are
// left out, unless the user asks for them.
class TvmExportFilter {
 public:
  explicit TvmExportFilter(bool extended) : extended_(extended) {}

  // Returns whether the record is written. Counts the records that are not.
  StatusOr<bool> Takes(std::string_view steps_json);
  // Reports the records that were left out on stderr.
  void Report() const;

 private:
  const bool extended_;
  int64_t left_out_ = 0, kernels_ = 0;
};

// Prints a remark about a log beside its records; "": nothing.
void PrintRemark(const std::string& path, const std::string& remark);

}  // namespace kiln::client
