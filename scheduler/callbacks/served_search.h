// The parts of one search that the user's process serves: its cost model, its objective, its sketch
// rules and its builds. Each call goes to the process, and its answer is checked.
//
// The search's interfaces cannot refuse. A call that fails therefore ends the search: `failed` is
// called once, which must stop the tasks, and the call returns neutral values. failure() says why.
//
// The process that was connected at the begin serves the whole search. A process that connects
// later does not know what this one has learned.
//
// Thread-safe. The objects that Model, Rules and Objective return must not outlive this one.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "costmodel/cost_model.h"
#include "proto/scheduler.pb.h"
#include "scheduler/callbacks/callback_hub.h"
#include "scheduler/values/served_code.h"
#include "search/space/sketch.h"
#include "search/tuning/objective.h"

namespace kiln::scheduler {

class ServedSearch {
 public:
  struct Options {
    std::string job_id = {};
    v1::ServedCode served = {};  // checked (values/served_code.h)
    std::stop_token stop = {};   // ends calls with Cancelled, which is no failure
    std::function<void()> failed = [] {};
  };
  // Unavailable if no process is connected.
  static StatusOr<std::unique_ptr<ServedSearch>> Begin(CallbackHub& hub, Options options);

  const v1::ServedCode& served() const { return options_.served; }
  bool has_model() const { return HasServedModel(served()); }

  // Returns the cost model of a task, or null if the job has no such model. The process gets the
  // estimates of `analytic` beside the rows that its model reads: PredictRows gives minus the
  // seconds of each row.
  std::shared_ptr<costmodel::CostModel> Model(int task,
                                              std::shared_ptr<const costmodel::CostModel> analytic);
  // Returns the rules of a task, or null if the job has none.
  std::unique_ptr<search::BatchedRules> Rules(int task);
  // Returns an objective of the latencies of as many groups (search/tuning/objective.h). Call only
  // if the objective is served.
  search::Objective Objective(double target_s);

  // Asks the user's function for the binary of a candidate, beside all other calls. The answer has
  // a binary, or the text of what the function raised. DeadlineExceeded: no answer came within
  // `timeout`. Neither ends the search. Cancelled: `stop` was requested. Other errors are the
  // search's failure.
  StatusOr<v1::CallbackReply> Build(v1::BuildCall call, absl::Duration timeout,
                                    const std::stop_token& stop);

  // OK until a call has failed. Unavailable: the process has gone, and the job may go on with
  // another process. All other errors end the job.
  Status failure() const;

  // Makes one call. `what` names the user's code in messages: "the cost model". The error is kept
  // as the failure. The objects above use these functions.
  StatusOr<v1::CallbackReply> Call(v1::CallbackRequest request, const std::string& what);
  // Notes the failure, and returns it.
  Status Fail(Status why);

 private:
  ServedSearch(std::unique_ptr<CallbackHub::Caller> caller, Options options)
      : caller_(std::move(caller)), options_(std::move(options)) {}

  const std::unique_ptr<CallbackHub::Caller> caller_;
  const Options options_;
  mutable std::mutex mutex_;
  Status failure_;
};

}  // namespace kiln::scheduler
