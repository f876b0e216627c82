// The tasks of records: a computation, and the device that measured it. A task is made once for all
// records that state the same.
//
// One thread at a time. The tasks live as long as this object.
#pragma once

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <tuple>

#include "search/space/task.h"
#include "store/record.h"

namespace kiln::training {

class RecordTasks {
 public:
  // When `stop` is requested, work on the tasks ends soon.
  explicit RecordTasks(std::stop_token stop = {}) : stop_(std::move(stop)) {}

  // Returns nullptr if the record's computation is not known, or if it or the target does not
  // parse.
  const search::Task* Find(const store::Record& record);

 private:
  const std::stop_token stop_;
  // The key is computation, target, hardware and device model.
  std::map<std::tuple<std::string, std::string, HardwareRow, std::string>,
           std::unique_ptr<search::Task>>
      tasks_;
};

}  // namespace kiln::training
