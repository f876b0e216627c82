// A log in TVM's form that grows while a job runs.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <unordered_set>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Appends to the file, which other jobs may have begun. A watched job tells its earlier trials
// again, so trials whose line is in the file already are left out.
class RecordLog {
 public:
  // Reads the lines of the file, if it is there. InvalidArgument if the file cannot be written.
  static StatusOr<RecordLog> Open(const std::string& path);

  // Appends the line of the record. Points of hand-written kernels have none. The first line ends
  // the file's last line, if a process was killed while it wrote that.
  Status Add(const v1::Record& record);

 private:
  explicit RecordLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::ofstream file_;
  // Tells whether the file's last line has no line feed.
  bool is_cut_ = false;
  // Hashes of the lines.
  std::unordered_set<uint64_t> lines_;
};

}  // namespace kiln::client
