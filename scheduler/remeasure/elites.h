// The elites of a job: the best candidates of its tasks so far. While the job goes on, devices that
// would be idle measure them again. This class says which elite a device measures next, keeps the
// readings of each, and holds the results that are not yet written to the store or told to the
// policy.
//
// A task has as many elites as its final race will have finalists, and none is much slower than the
// best of the task's variants. Twice as many candidates are kept, with their artifacts, so that an
// elite that turns out slow has a successor and nothing is built again. A device reads the elites
// of a task in rounds (search/tuning/interleaved_readings.h), and takes the task with the least
// known elite first. Only readings of one device are compared: the device that has read the task's
// elites most often.
//
// Thread-safe. Times are seconds. Memory: the artifacts, up to Options::most_bytes together; the
// slowest elites do without theirs; and of each task the readings of a few devices, the ones that
// read it last. Cost of each call: proportional to the elites of all tasks.
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
  double cost_s = 0;  // cost in its trial
  // Null: the elite is of an earlier run and is not read.
  std::shared_ptr<const v1::Artifact> artifact = nullptr;
  store::Remeasurement known = {};  // readings of earlier runs; may be empty
};

class EliteSet {
 public:
  struct Options {
    int finalists = 8;        // at most so many elites of a task
    double slowest_s = 0.01;  // slower candidates are left to the final race
    int64_t most_bytes = int64_t{256} << 20;
  };
  // `group_of_task` has the group of each task. Alternatives of each other share a group.
  EliteSet(const Options& options, std::vector<int> group_of_task);

  // Tells whether the artifact of a trial that cost so much is worth keeping.
  bool MayBeElite(int task, double cost_s) const;
  // Counts all trials of the task, failed ones too: tasks with more trials have more elites.
  void CountTrials(int task, int trials);
  void Add(Elite elite);

  // Returns the elite that the device reads next, and a different one each time if there are
  // several. Returns nothing if all elites are known well enough.
  struct Turn {
    int task = 0;
    int64_t record_id = 0;
    std::shared_ptr<const v1::Artifact> artifact = nullptr;
  };
  std::optional<Turn> Next(const std::string& device);
  void Read(const Turn& turn, const std::string& device, std::span<const double> costs_s,
            double run_s);
  // Notes that the elite answered wrongly or crashed. Returns true if it stops being an elite. Only
  // its second crash in a row counts, because the first may be another program's fault.
  bool Fail(const Turn& turn, int error, std::string message, double run_s);

  // Returns the elites that have changed since the last call. Failures should be written at once.
  std::vector<store::Remeasurement> TakeUnwritten();
  bool has_unwritten() const;
  bool has_failures() const;
  // Candidates whose cost differs noticeably from the cost that was told before.
  struct Correction {
    int task = 0;
    uint32_t trial = 0;
    uint64_t hash = 0;
    std::optional<double> cost_s;  // empty: the candidate failed
  };
  std::vector<Correction> TakeCorrections();

  // For the final race: the readings of the record by this device, and the artifact if it is still
  // kept.
  store::Remeasurement KnownOn(int64_t record_id, const std::string& device) const;
  std::shared_ptr<const v1::Artifact> ArtifactOf(int64_t record_id) const;

 private:
  struct Entry {
    Elite elite;
    double told_s = 0;  // the cost that the search knows
    double run_s = 0;
    bool suspect = false;  // its last reading crashed
    bool unwritten = false;
  };
  struct Device {
    search::InterleavedReadings readings;  // candidates are record ids
    int64_t blocks = 0;
    uint64_t served = 0;  // the turn at which the device last read this task
    int64_t last = 0;     // the record that it read then
  };
  struct Task {
    int group = 0;
    int trials = 0;
    std::map<int64_t, Entry> entries;  // key: record id
    std::map<std::string, Device> devices;
    std::string home;  // the device whose readings count
  };

  int MaxElites(const Task& task) const;
  double CostOf(const Task& task, const Entry& entry) const;
  std::vector<Entry*> ByCost(Task& task) const;
  std::vector<Entry*> ElitesOf(Task& task);
  double BestOfGroup(int group) const;
  // Returns the elites that the device may read, in this round or a later one.
  std::vector<Entry*> Readable(Task& task, const Device& device);
  // Returns the device's readings of the task; none if it has not read it.
  const Device& DeviceOf(const Task& task, const std::string& device) const;
  // Returns the record that the device read last, of any task; 0 if none is known.
  int64_t LastOf(const std::string& device) const;
  // Returns a place for the device's readings, for which those of another device may go.
  Device& PlaceOf(Task& task, const std::string& device) const;
  void Crop(Task& task);
  void CropArtifacts();
  store::Remeasurement RemeasurementOf(const Task& task, const Entry& entry,
                                       const std::string& device) const;
  const Entry* Find(int64_t record_id, const Task** task) const;

  const Options options_;
  const Device none_ = {};  // of a device that has read nothing
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
  uint64_t turns_ = 0;
  std::vector<store::Remeasurement> unwritten_;  // results of candidates that are no longer kept
  bool failures_ = false;                        // whether unwritten_ has a failure
  std::vector<Correction> corrections_;          // corrections of candidates that failed
};

}  // namespace kiln::scheduler
