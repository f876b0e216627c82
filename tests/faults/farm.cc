#include "tests/faults/farm.h"

#include <string>
#include <utility>
#include <vector>

#include "rpc/channel.h"

namespace kiln {
namespace {

using Flags = std::vector<std::string>;

StatusOr<std::unique_ptr<DaemonProcess>> StartDaemon(const std::string& program, Flags flags,
                                                     const Flags& common) {
  flags.insert(flags.end(), common.begin(), common.end());
  auto daemon = std::make_unique<DaemonProcess>(program, std::move(flags));
  KILN_RETURN_IF_ERROR(daemon->Start());
  return daemon;
}

}  // namespace

StatusOr<std::unique_ptr<Farm>> Farm::Start(const Options& options) {
  KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-farm"));
  std::unique_ptr<Farm> farm(new Farm(options, std::move(folder)));
  if (farm->options_.db_folder.empty()) farm->options_.db_folder = farm->folder_.path();
  Flags common;
  if (!options.secret.empty()) {
    const std::string file = farm->folder_.Join("secret");
    KILN_RETURN_IF_ERROR(WriteFileAtomically(file, options.secret.text(), 0600));
    common = {"--secret-file", file};
  }
  if (!options.keys_folder.empty()) common = {"--keys", options.keys_folder};
  KILN_ASSIGN_OR_RETURN(farm->tracker_, StartDaemon("tracker/kiln_tracker",
                                                    {"--deadline-ms", "3000", "--lease-ms",
                                                     fmt::format("{}", options.lease_ms)},
                                                    common));
  common.insert(common.end(), {"--tracker", farm->tracker_->address()});
  KILN_ASSIGN_OR_RETURN(farm->scheduler_,
                        StartDaemon("scheduler/kiln_scheduler", {"--db", farm->db()}, common));
  Flags builder = {"--jobs", "2"};
  if (options.allow_faults) builder.push_back("--allow-faults");
  KILN_ASSIGN_OR_RETURN(farm->builder_, StartDaemon("builder/kiln_builder", builder, common));
  KILN_ASSIGN_OR_RETURN(
      farm->runner_,
      StartDaemon("runner/kiln_runner", {"--threads", "1", "--device", options.device}, common));
  return farm;
}

StatusOr<std::unique_ptr<Farm>> Farm::Start() { return Start(Options()); }

std::unique_ptr<v1::Scheduler::Stub> Farm::Connect() {
  return v1::Scheduler::NewStub(MakeChannel(scheduler_->address(), options_.secret));
}

std::string Farm::Logs() const {
  return tracker_->Log() + scheduler_->Log() + builder_->Log() + runner_->Log();
}

}  // namespace kiln
