// What a cost model learns from, or is tested on: measured programs as feature rows, out of the
// records of a store.
//
// Records come one at a time, in any number; what is held of them is at most `programs` of them,
// shared out evenly by task (a computation on a device): of each task the fastest one and others by
// chance, the same ones for the same seed in whatever order they come.
//
// A record that is none to learn from is counted, with the reason: its computation is not known, its
// steps do not parse, replay or lower, its costs are no comparison with others or are what no device
// can have, or the workers failed and not the candidate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/float_matrix.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "costmodel/cost_model.h"
#include "costmodel/model_file.h"
#include "costmodel/trained/record_tasks.h"
#include "device/device_model.h"
#include "store/store.h"

namespace kiln::costmodel {

struct LessonOptions {
  uint64_t seed = 1;
  int64_t programs = 10'000;  // at most, from 1 on
  std::stop_token stop = {};  // requested: Finish ends soon, with Cancelled
};

struct LessonProgram {
  int task = 0;        // index into Lesson::tasks
  int64_t record = 0;  // its number
  std::shared_ptr<const FloatMatrix> rows;
  std::optional<double> cost_s;  // none: it failed
};

struct LeftOut {
  int64_t records = 0;
  std::string first;  // "record 17: ..."
};

struct Lesson {
  std::vector<ModelTask> tasks;              // those with programs, the most programs first
  std::vector<device::DeviceModel> devices;  // of each task, as far as it is known
  std::vector<bool> gpu;                     // of each task: its target is one
  std::vector<LessonProgram> programs;       // by record
  std::map<std::string, LeftOut> left_out;   // by reason
  int64_t records = 0;                       // that were looked at
};

// What the model is given.
std::vector<Sample> SamplesOf(const Lesson& lesson);

// One thread at a time.
class LessonReader {
 public:
  // The store says which computation an imported record is of; it outlives this.
  LessonReader(store::Store& store, LessonOptions options);
  LessonReader(const LessonReader&) = delete;
  LessonReader& operator=(const LessonReader&) = delete;

  // An error of the store, no other.
  Status Add(const store::Record& record);

  // Nothing may follow. Cost: what lowering and features of the programs take, over the pool.
  StatusOr<Lesson> Finish(ThreadPool& pool);

 private:
  struct Kept {
    int64_t record = 0;
    std::string steps;
    std::optional<double> cost_s;
    const search::Task* task = nullptr;
  };
  // Of one computation on one device.
  struct Group {
    ModelTask about;
    device::DeviceModel device;
    bool gpu = false;
    std::optional<Kept> fastest;
    std::multimap<uint64_t, Kept> others;  // by chance; the last goes first

    int64_t size() const { return static_cast<int64_t>(others.size()) + fastest.has_value(); }
  };

  // What the key of a log stands for.
  struct Meaning {
    std::vector<store::Computation> bearers;
    bool bound = false;  // somebody has said; then the bearer is that one
  };

  void LeaveOut(std::string_view reason, int64_t record, std::string_view detail);
  // Of an imported record, which has none; nullptr: it is of none that is known.
  StatusOr<const store::Computation*> ComputationOf(const store::Record& record);
  void AddKnown(const store::Record& record);
  void Keep(Group& group, Kept kept);
  void DropOne();

  store::Store& store_;
  const LessonOptions options_;
  RecordTasks tasks_;
  std::map<std::string, Meaning> meanings_;  // by key
  std::map<std::string, Group> groups_;      // by computation, target and device
  std::set<std::pair<int64_t, std::string>> by_size_;
  int64_t kept_ = 0;
  Lesson lesson_;
};

}  // namespace kiln::costmodel
