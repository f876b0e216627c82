#include "tests/faults/farm.h"

#include <string>
#include <vector>

#include "proto/channel.h"

namespace kiln {

Farm::Farm(TempDir folder) : folder_(std::move(folder)) {}

StatusOr<std::unique_ptr<Farm>> Farm::Start(const std::string& device) {
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-farm"));
  std::unique_ptr<Farm> farm(new Farm(std::move(folder)));
  using Flags = std::vector<std::string>;
  farm->tracker_ = std::make_unique<DaemonProcess>("tracker/kiln_tracker", Flags{"--deadline-ms", "3000"});
  KILN_RETURN_IF_ERROR(farm->tracker_->Start());
  const std::string tracker = farm->tracker_->address();
  farm->scheduler_ = std::make_unique<DaemonProcess>("scheduler/kiln_scheduler",
                                                     Flags{"--tracker", tracker, "--db", farm->db()});
  farm->builder_ = std::make_unique<DaemonProcess>("builder/kiln_builder",
                                                   Flags{"--tracker", tracker, "--jobs", "2", "--allow-faults"});
  farm->runner_ = std::make_unique<DaemonProcess>("runner/kiln_runner",
                                                  Flags{"--tracker", tracker, "--threads", "1", "--device", device});
  KILN_RETURN_IF_ERROR(farm->scheduler_->Start());
  KILN_RETURN_IF_ERROR(farm->builder_->Start());
  KILN_RETURN_IF_ERROR(farm->runner_->Start());
  return farm;
}

std::unique_ptr<v1::Scheduler::Stub> Farm::Connect() { return v1::Scheduler::NewStub(MakeChannel(scheduler_->address())); }

std::string Farm::Logs() const { return tracker_->Log() + scheduler_->Log() + builder_->Log() + runner_->Log(); }

}  // namespace kiln
