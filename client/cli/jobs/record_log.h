// A log in TVM's form that grows while a job runs.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>

#include "base/status.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// Appends to the file, which other jobs may have begun. A watched job tells its earlier trials
// again, so trials whose line is in the file already are left out.
class RecordLog {
 public:
  // Reads the lines of the file, if it is there.
  static StatusOr<RecordLog> Open(const std::string& path);

  // Appends the line of the record. Points of hand-written kernels have none.
  Status Add(const v1::Record& record);

 private:
  explicit RecordLog(std::string path) : path_(std::move(path)) {}

  std::string path_;
  // Hashes of the lines.
  std::unordered_set<uint64_t> lines_;
};

}  // namespace kiln::client
