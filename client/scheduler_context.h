// A context of schedules that asks a scheduler. All clients of the scheduler share its records and
// settings (search/choice/context.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "client/client.h"
#include "search/choice/context.h"

namespace kiln::client {

struct SchedulerContextOptions {
  bool include_compatible = false;
  // True: if the scheduler knows no schedule, it chooses one without measuring, with `seed`.
  bool or_sample = false;
  uint64_t seed = 1;
};

class SchedulerContext final : public search::Context {
 public:
  // `client` may be destroyed before it.
  SchedulerContext(const SchedulerClient& client, SchedulerContextOptions options,
                   std::shared_ptr<search::Context> outer = nullptr)
      : Context(std::move(outer)), stub_(client.stub()), options_(options) {}

 protected:
  StatusOr<search::Choice> Find(const search::Task& task) override;
  // Sets the schedule for all clients of the scheduler, from now on.
  Status Keep(const search::Task& task, std::string_view steps) override;

 private:
  const std::shared_ptr<v1::Scheduler::Stub> stub_;
  const SchedulerContextOptions options_;
};

}  // namespace kiln::client
