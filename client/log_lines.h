// The lines of a log, from a file or from stdin, one at a time: however large the log, no more than
// a line is held.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/status.h"
#include "store/measure_log.h"

namespace kiln::client {

class LogLines {
 public:
  // "-": stdin. Errors of the file system name the path.
  static StatusOr<LogLines> Open(const std::string& path);

  // The next line without its line feed; false: there is none. Of a line that is longer than any
  // record (store/import_log.h) so much is there that this can be seen. The mark that Windows puts
  // in front of UTF-8 is no part of the first line. InvalidArgument where no line feed comes for
  // ever: "/dev/zero, line 1: ...".
  StatusOr<bool> Next(std::string& line);

  // "3 lines say versions that are not known, the first is line 7, of v0.9: ...", of those that were
  // given out; "": there is none. They are read as lines of the newest version are.
  std::string VersionRemark() const;

 private:
  LogLines(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  // False: the end.
  StatusOr<bool> Fill();
  StatusOr<bool> Read(std::string& line);

  std::string path_;
  UniqueFd file_;
  int64_t number_ = 0;
  int64_t unknown_versions_ = 0;
  std::string first_unknown_;  // "line 7, of v0.9"
  std::string buffer_;
  size_t at_ = 0;  // of what is not yet given out
};

// Each record of a measure log in turn; the first line that is none, and what `visit` refuses, end
// it: "a.json: line 12: ...". `remark`: LogLines::VersionRemark.
Status VisitLog(const std::string& path, const std::function<Status(store::MeasureLogLine)>& visit,
                std::string* remark = nullptr);

}  // namespace kiln::client
