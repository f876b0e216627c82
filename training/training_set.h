// The measured programs that a cost model learns from or is tested on, as feature rows, from the
// records of a store.
//
// Records come one at a time, in any number. At most `programs` of them are kept, shared out evenly
// by task (a computation on a device): of each task, the fastest one and others drawn at random.
// The same seed keeps the same ones, in whatever order they come.
//
// A record that cannot be learned from is counted, with the reason: its computation is not known;
// its steps do not parse, replay or lower; its costs do not compare with others, or no device can
// have them; or the workers failed, and not the candidate.
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

#include "base/numbers/float_matrix.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "costmodel/cost_model.h"
#include "costmodel/model_file.h"
#include "device/device_model.h"
#include "store/store.h"
#include "training/record_tasks.h"

namespace kiln::training {

struct TrainingSetOptions {
  uint64_t seed = 1;
  int64_t programs = 10'000;  // the most programs, at least 1
  std::stop_token stop = {};  // requested: Finish ends soon, with Cancelled
};

struct TrainingProgram {
  int task = 0;        // index into TrainingSet::tasks
  int64_t record = 0;  // number of the record
  std::shared_ptr<const FloatMatrix> rows;
  std::optional<double> cost_s;  // none: the program failed
};

struct LeftOut {
  int64_t records = 0;
  std::string first;  // "record 17: ..."
};

struct TrainingSet {
  std::vector<costmodel::ModelTask> tasks;   // tasks with programs, the most programs first
  std::vector<device::DeviceModel> devices;  // one for each task, as far as it is known
  std::vector<bool> gpu;                     // one for each task: whether its target is a GPU
  std::vector<TrainingProgram> programs;     // in the order of their records
  std::map<std::string, LeftOut> left_out;   // key: the reason
  int64_t records = 0;                       // number of records that were read
};

// Returns the samples that the model is given.
std::vector<costmodel::Sample> SamplesOf(const TrainingSet& set);

// Used by one thread at a time.
class TrainingSetReader {
 public:
  // The store tells the computation of an imported record. The store outlives this object.
  TrainingSetReader(store::Store& store, TrainingSetOptions options);
  TrainingSetReader(const TrainingSetReader&) = delete;
  TrainingSetReader& operator=(const TrainingSetReader&) = delete;

  // Returns only errors of the store.
  Status Add(const store::Record& record);

  // Nothing may be added after this. Cost: lowering and features of the programs, spread over the
  // pool.
  StatusOr<TrainingSet> Finish(ThreadPool& pool);

 private:
  struct Kept {
    int64_t record = 0;
    std::string steps;
    std::optional<double> cost_s;
    const search::Task* task = nullptr;
  };
  // The records of one computation on one device.
  struct Group {
    costmodel::ModelTask about;
    device::DeviceModel device;
    bool gpu = false;
    std::optional<Kept> fastest;
    std::multimap<uint64_t, Kept> others;  // in a random order; the last one is dropped first

    int64_t size() const { return static_cast<int64_t>(others.size()) + fastest.has_value(); }
  };

  // The computations that the key of a log stands for.
  struct Meaning {
    std::vector<store::Computation> bearers;
    bool bound = false;  // somebody has bound the key to its only bearer
  };

  void LeaveOut(std::string_view reason, int64_t record, std::string_view detail);
  // Returns the computation of an imported record, whose text lacks it, or nullptr if it is not
  // known.
  StatusOr<const store::Computation*> ComputationOf(const store::Record& record);
  void AddKnown(const store::Record& record);
  void Keep(Group& group, Kept kept);
  void DropOne();

  store::Store& store_;
  const TrainingSetOptions options_;
  RecordTasks tasks_;
  std::map<std::string, Meaning> meanings_;  // key: the key of a log
  std::map<std::string, Group> groups_;      // key: computation, target and device
  std::set<std::pair<int64_t, std::string>> by_size_;
  int64_t kept_ = 0;
  TrainingSet set_;
};

}  // namespace kiln::training
