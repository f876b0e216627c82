// kiln users set changes what a user may have.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "client/cli/session_flags.h"
#include "client/cli/users/commands.h"
#include "client/client.h"
#include "client/service_call.h"
#include "client/view/json.h"

namespace kiln::client {
namespace {

struct SetFlags {
  std::string name;
  std::optional<double> weight;
  std::optional<uint64_t> trials_per_day, stored_bytes;
  std::optional<uint32_t> devices, jobs;
  bool empty() const { return !weight && !trials_per_day && !stored_bytes && !devices && !jobs; }
};

// Returns the user as he is. A user whom the scheduler does not know has no limits.
StatusOr<v1::UserShare> UserNow(SchedulerClient& client, const std::string& name) {
  v1::ListUsersRequest request;
  request.set_name(name);
  KILN_ASSIGN_OR_RETURN(const v1::ListUsersReply reply,
                        Call(*client.stub(), &v1::Scheduler::Stub::ListUsers, request));
  if (!reply.users().empty()) return reply.users(0);
  v1::UserShare user;
  user.set_name(name);
  user.set_weight(1);
  return user;
}

Status SetUser(const SetFlags& flags, const Session& session) {
  if (flags.empty()) {
    return InvalidArgument(
        "nothing to set for '{}'; expected --weight, --trials-per-day, --devices, --jobs or "
        "--stored-bytes, as in {}",
        flags.name, session.Command("users set " + flags.name + " --weight 2"));
  }
  KILN_ASSIGN_OR_RETURN(const auto client, session.Connect());
  KILN_ASSIGN_OR_RETURN(v1::UserShare user, UserNow(*client, flags.name));
  if (flags.weight) user.set_weight(*flags.weight);
  if (flags.trials_per_day) user.set_trials_per_day(*flags.trials_per_day);
  if (flags.devices) user.set_devices(*flags.devices);
  if (flags.jobs) user.set_jobs(*flags.jobs);
  if (flags.stored_bytes) user.set_stored_bytes(*flags.stored_bytes);
  v1::SetUserRequest request;
  *request.mutable_user() = user;
  KILN_RETURN_IF_ERROR(Call(*client->stub(), &v1::Scheduler::Stub::SetUser, request).status());
  if (session.json) {
    fmt::print("{}\n", JsonOf(user));
    return OkStatus();
  }
  const auto limit = [](uint64_t value) {
    return value == 0 ? std::string("any") : fmt::format("{}", value);
  };
  fmt::print(
      "{} has the weight {:g} and may have: trials a day {}, devices at once {}, unfinished "
      "jobs {}, stored bytes {}\n",
      user.name(), user.weight(), limit(user.trials_per_day()), limit(user.devices()),
      limit(user.jobs()), limit(user.stored_bytes()));
  return OkStatus();
}

}  // namespace

Run AddUsersSet(CLI::App& set, SessionFlags& session) {
  const auto flags = std::make_shared<SetFlags>();
  set.description("change what a user may have; 0 takes a limit away");
  set.add_option("name", flags->name, "name of the user: that of the certificate")->required();
  set.add_option("--weight", flags->weight, "share of the devices' time beside other users [1]");
  set.add_option("--trials-per-day", flags->trials_per_day,
                 "trials of 24 hours; a job that asks for more is refused")
      ->check(NotNegative());
  set.add_option("--devices", flags->devices, "devices at once; further jobs wait")
      ->check(NotNegative());
  set.add_option("--jobs", flags->jobs, "unfinished jobs; a further one is refused")
      ->check(NotNegative());
  set.add_option("--stored-bytes", flags->stored_bytes,
                 "bytes that the user's records take; then jobs are refused")
      ->check(NotNegative());
  session.AddScheduler(set);
  return Plain([flags](const Session& session) { return SetUser(*flags, session); });
}

}  // namespace kiln::client
