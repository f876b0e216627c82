// The context of schedules that a scheduler is: whoever holds it asks the scheduler, whose records
// and settings all clients share (search/choice/context.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "client/client.h"
#include "search/choice/context.h"

namespace kiln::client {

struct SchedulerContextOptions {
  bool include_compatible = false;
  // Where the scheduler knows none: it chooses one without measuring, with this seed.
  bool or_sample = false;
  uint64_t seed = 1;
};

class SchedulerContext final : public search::Context {
 public:
  // `client` may go before it.
  SchedulerContext(const SchedulerClient& client, SchedulerContextOptions options,
                   std::shared_ptr<search::Context> outer = nullptr)
      : Context(std::move(outer)), stub_(client.stub()), options_(options) {}

 protected:
  StatusOr<search::Choice> Find(const search::Task& task) override;
  // For all who ask that scheduler, from now on.
  Status Keep(const search::Task& task, std::string_view steps) override;

 private:
  const std::shared_ptr<v1::Scheduler::Stub> stub_;
  const SchedulerContextOptions options_;
};

}  // namespace kiln::client
