// The tasks that records are of: a computation on what measured it, made once for all records that
// say the same.
//
// One thread at a time; what it gives lives as long as it does.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>

#include "search/space/task.h"
#include "store/record.h"

namespace kiln::costmodel {

class RecordTasks {
 public:
  // Requested: work on the tasks ends soon.
  explicit RecordTasks(std::stop_token stop = {}) : stop_(std::move(stop)) {}

  // nullptr: the record's computation is not known, or it or its target does not parse.
  const search::Task* Find(const store::Record& record);

 private:
  const std::stop_token stop_;
  // By computation, target, hardware and device model.
  std::map<std::tuple<std::string, std::string, HardwareRow, std::string>,
           std::unique_ptr<search::Task>>
      tasks_;
};

}  // namespace kiln::costmodel
