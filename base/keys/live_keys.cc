#include "base/keys/live_keys.h"

#include <sys/stat.h>

#include <utility>

#include "base/log.h"

namespace kiln {

StatusOr<std::shared_ptr<LiveKeys>> LiveKeys::Open(std::string path, Clock& clock) {
  std::shared_ptr<LiveKeys> keys(new LiveKeys(std::move(path), clock));
  KILN_RETURN_IF_ERROR(keys->Read(keys->Look()));
  return keys;
}

std::shared_ptr<const KeyFolder> LiveKeys::Now() {
  const std::lock_guard lock(mutex_);
  if (clock_.MonotonicSeconds() < next_look_s_) return good_;
  const Stamps stamps = Look();
  if (stamps == stamps_) {
    next_look_s_ = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(kLookEvery);
    return good_;
  }
  const Status read = Read(stamps);
  const std::string problem(Message(read));
  if (problem == last_problem_) return good_;
  if (!read.ok()) LogWarn("the keys stay as they were: {}", problem);
  last_problem_ = problem;
  return good_;
}

void LiveKeys::TakeRevocations(std::string_view pem) {
  const std::string problem(Message(Take(pem)));
  const std::lock_guard lock(mutex_);
  if (problem != last_refusal_ && !problem.empty()) {
    LogWarn("a list of revoked certificates is not taken: {}", problem);
  }
  last_refusal_ = problem;
}

Status LiveKeys::Take(std::string_view pem) {
  const std::shared_ptr<const KeyFolder> now = Now();
  if (pem.empty() || pem == now->revoked.ToPem()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const Revocations list,
                        Revocations::Parse(pem, now->authority, "what the tracker has sent"));
  if (list.number() <= now->revoked.number()) return OkStatus();
  KILN_RETURN_IF_ERROR(WriteRevocations(path_, list));
  LogInfo("took the farm's list {} of revoked certificates", list.number());
  return OkStatus();
}

LiveKeys::Stamps LiveKeys::Look() const {
  Stamps stamps;
  for (size_t i = 0; i < stamps.size(); ++i) {
    struct stat info{};
    if (stat(KeyFolderFiles(path_)[i].c_str(), &info) != 0) continue;
    stamps[i] = {info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  }
  return stamps;
}

// The stamps are older than what is read, so that a change in between is seen at the next look.
Status LiveKeys::Read(const Stamps& stamps) {
  next_look_s_ = clock_.MonotonicSeconds() + absl::ToDoubleSeconds(kLookEvery);
  KILN_ASSIGN_OR_RETURN(KeyFolder folder, ReadKeyFolder(path_));
  good_ = std::make_shared<const KeyFolder>(std::move(folder));
  stamps_ = stamps;
  return OkStatus();
}

}  // namespace kiln
