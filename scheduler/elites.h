// The elites of a job: the best candidates of its tasks so far. While the job goes on, devices that
// would be idle measure them again. This class says which one a device measures next, keeps what
// all readings say of each, and holds what is not yet written to the store or told to the policy.
//
// Of each task there are as many elites as its final race will have, none much slower than the best
// of the task's variants. Twice as many are kept, with their artifacts, so that one that turns out
// slow has a successor and nothing is built again. A device reads the elites of a task in rounds
// (search/tuning/interleaved_readings.h), tasks with the least known elite first. Only readings of
// one device are compared: of the one that has read the task's elites most.
//
// Thread-safe. Seconds. Memory: the artifacts, up to Options::most_bytes together; the slowest
// elites do without. Cost of each call: the elites of all tasks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/trial.pb.h"
#include "search/tuning/interleaved_readings.h"
#include "store/store.h"

namespace kiln::scheduler {

// A candidate that has a record.
struct Elite {
  int task = 0;
  uint32_t trial = 0;
  int64_t record_id = 0;
  uint64_t hash = 0;
  double cost_s = 0;                                       // what its trial measured
  std::shared_ptr<const v1::Artifact> artifact = nullptr;  // null: of an earlier run, not read
  store::Remeasurement known = {};                         // what earlier runs read; may be empty
};

class EliteSet {
 public:
  struct Options {
    int finalists = 8;        // of a task at most
    double slowest_s = 0.01;  // slower ones are left to the final race
    int64_t most_bytes = int64_t{256} << 20;
  };
  // The group of each task: alternatives of each other have one.
  EliteSet(const Options& options, std::vector<int> group_of_task);

  // Is it worth keeping the artifact of a trial that cost so much?
  bool MayBeElite(int task, double cost_s) const;
  // Every trial of the task, whatever came of it: long jobs have more elites.
  void CountTrials(int task, int trials);
  void Add(Elite elite);

  // What the device reads next, which is another one each time where there are several; nothing:
  // all is known well enough.
  struct Turn {
    int task = 0;
    int64_t record_id = 0;
    std::shared_ptr<const v1::Artifact> artifact = nullptr;
  };
  std::optional<Turn> Next(const std::string& device);
  void Read(const Turn& turn, const std::string& device, std::span<const double> costs_s,
            double run_s);
  // It answered wrongly, or crashed. True: it leads no more; of crashes only the second in a row
  // counts, as the first may be another's.
  bool Fail(const Turn& turn, int error, std::string message, double run_s);

  // Of what has changed since the last call. Failures are urgent.
  std::vector<store::Remeasurement> TakeUnwritten();
  bool has_unwritten() const;
  bool has_failures() const;
  // Candidates that cost something else than was said of them before, by what matters.
  struct Correction {
    int task = 0;
    uint32_t trial = 0;
    uint64_t hash = 0;
    std::optional<double> cost_s;  // none: it failed
  };
  std::vector<Correction> TakeCorrections();

  // For the final race: what this device has read of it, and its artifact if it is still here.
  store::Remeasurement KnownOn(int64_t record_id, const std::string& device) const;
  std::shared_ptr<const v1::Artifact> ArtifactOf(int64_t record_id) const;

 private:
  struct Entry {
    Elite elite;
    double told_s = 0;  // as the search knows it
    double run_s = 0;
    bool suspect = false;  // it crashed the last time
    bool unwritten = false;
  };
  struct Device {
    search::InterleavedReadings readings;  // by record id
    int64_t blocks = 0;
    uint64_t served = 0;  // when, counted in turns
  };
  struct Task {
    int group = 0;
    int trials = 0;
    std::map<int64_t, Entry> entries;  // by record id
    std::map<std::string, Device> devices;
    std::string home;  // the device whose readings count
  };

  int MostElites(const Task& task) const;
  double CostOf(const Task& task, const Entry& entry) const;
  std::vector<Entry*> ByCost(Task& task) const;
  std::vector<Entry*> ElitesOf(Task& task);
  double BestOfGroup(int group) const;
  // The elites that the device may read, in this round or a later one.
  std::vector<Entry*> Readable(Task& task, const std::string& device);
  void Crop(Task& task);
  void CropArtifacts();
  store::Remeasurement RemeasurementOf(const Task& task, const Entry& entry,
                                       const std::string& device) const;
  const Entry* Find(int64_t record_id, const Task** task) const;

  const Options options_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  std::map<std::string, int64_t> last_;  // by device: the record whose turn it was
  uint64_t turns_ = 0;
  std::vector<store::Remeasurement> unwritten_;  // of those that lead no more
  bool failures_ = false;                        // among them
  std::vector<Correction> corrections_;          // likewise
};

}  // namespace kiln::scheduler
