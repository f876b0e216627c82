// Asks the daemons of a farm whether they answer.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/farm/farm_state.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

struct FarmAnswers {
  // For each process of the state, in its order; "" if it answers, otherwise what it lacks.
  std::vector<std::string> trouble;
  v1::ListReply workers;
  std::vector<v1::JobStatus> jobs;

  bool AllAnswer() const;
  // Returns whether those answer that serve as the state says; a runner that keeps dying does not.
  bool ServingAnswer(const FarmState& state) const;
  int CountJobs(v1::JobState state) const;
  // Counts the workers that the tracker lists.
  int CountWorkers(v1::WorkerKind kind) const;
};

// Returns the session of the user of this farm on this machine, with his keys or the secret.
Session FarmSession(const FarmState& state, Session session);

// Asks whether the daemons answer, and lists no jobs. Tracker and scheduler are called; a worker
// answers if the tracker lists each of its addresses, which it announces again and again. Takes
// seconds if a daemon hangs. Call InitGrpc first.
FarmAnswers AskDaemons(const FarmState& state, const Session& session);
// Does the same, and lists all jobs.
FarmAnswers AskFarm(const FarmState& state, const Session& session);

}  // namespace kiln::client
