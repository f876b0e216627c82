// Writes results to the store, in a thread of its own, and only then lets the search have them: one
// commit for all that came since the last one. What the readings of elites say goes along once a
// second, a failure among them at once.
//
// A result that the store refuses ends the job.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "scheduler/idle_readings.h"
#include "scheduler/trial_ledger.h"
#include "store/store.h"

namespace kiln::scheduler {

class ResultWriter {
 public:
  // All outlive this. `references_known`: the tasks whose reference cost the store has.
  // `committed` is called after each commit, `written` when trials were among it; both in our
  // thread.
  ResultWriter(std::string job_id, std::set<int> references_known, TrialLedger& ledger,
               IdleReadings& readings, store::Store& store, std::function<void()> committed,
               std::function<void()> written);
  // Writes what is left. After TrialLedger::Close.
  ~ResultWriter() { thread_.join(); }

 private:
  void Run();
  Status Write(std::vector<MeasuredTrial>& trials, bool with_readings);
  Status Commit(std::vector<MeasuredTrial>& trials);  // sets the records' ids

  const std::string job_id_;
  TrialLedger& ledger_;
  IdleReadings& readings_;
  store::Store& store_;
  const std::function<void()> committed_;
  const std::function<void()> written_;
  std::set<int> references_known_;  // of the thread
  std::thread thread_;              // last: it uses the rest
};

}  // namespace kiln::scheduler
