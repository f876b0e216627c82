// Writes results to the store in a thread of its own, and only then hands them to the search. All
// results that came since the last commit share one commit. Readings of elites are written along
// once a second, and failures of elites at once.
//
// A result that the store refuses ends the job.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "scheduler/dispatch/idle_readings.h"
#include "scheduler/dispatch/trial_ledger.h"
#include "store/store.h"

namespace kiln::scheduler {

class ResultWriter {
 public:
  // All references outlive this object. `references_known` has the tasks whose reference cost the
  // store has. `committed` is called after each commit, `traced` then with each of its records
  // unless it is null, and `written` after a commit that has trials; all run in the writer's
  // thread.
  ResultWriter(std::string job_id, std::set<int> references_known, Clock& clock,
               TrialLedger& ledger, IdleReadings& readings, store::Store& store,
               std::function<void()> committed, std::function<void(const store::Record&)> traced,
               std::function<void()> written);
  // Writes the remaining results. TrialLedger::Close must have been called.
  ~ResultWriter() { thread_.join(); }

 private:
  void Run();
  Status Write(std::vector<MeasuredTrial>& trials, bool with_readings);
  // Sets the records' ids and the instant of the commit.
  Status Commit(std::vector<MeasuredTrial>& trials);

  const std::string job_id_;
  Clock& clock_;
  TrialLedger& ledger_;
  IdleReadings& readings_;
  store::Store& store_;
  const std::function<void()> committed_;
  const std::function<void(const store::Record&)> traced_;
  const std::function<void()> written_;
  std::set<int> references_known_;  // belongs to the thread
  std::thread thread_;              // last: the thread uses the other members
};

}  // namespace kiln::scheduler
