// Reads the lines of a log from a file or from stdin, one at a time. Memory holds no more than a
// line, however large the log is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/file/fd.h"
#include "base/status.h"
#include "store/measure_log.h"

namespace kiln::client {

class LogLines {
 public:
  // "-" means stdin. Errors of the file system name the path.
  static StatusOr<LogLines> Open(const std::string& path);

  // Reads the next line without its line feed; false: the log has ended. A line that is longer than
  // any record (store/import_log.h) is cut to one byte more than allowed, so that the caller sees
  // its length. The mark that Windows puts in front of UTF-8 is dropped from the first line.
  // InvalidArgument if a line never ends: "/dev/zero, line 1: ...".
  StatusOr<bool> Next(std::string& line);

  // Returns "3 lines of a version that is not known, the first is line 7, of v0.9; ..." about the
  // lines that were read so far; "" if there is none. Such lines are read like lines of the newest
  // version.
  std::string VersionRemark() const;

 private:
  LogLines(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  // Returns false at the end of the file.
  StatusOr<bool> Fill();
  StatusOr<bool> Read(std::string& line);

  std::string path_;
  UniqueFd file_;
  int64_t number_ = 0;
  int64_t unknown_versions_ = 0;
  // "line 7, of v0.9".
  std::string first_unknown_;
  std::string buffer_;
  // Start of the unread part of `buffer_`.
  size_t at_ = 0;
};

// Calls `visit` for each record of a measure log. The first line that is no record, or that `visit`
// refuses, ends the visit: "a.json: line 12: ...". `remark` receives LogLines::VersionRemark.
Status VisitLog(const std::string& path, const std::function<Status(store::MeasureLogLine)>& visit,
                std::string* remark = nullptr);

}  // namespace kiln::client
