#include "base/keys/live_keys.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
  if (problem != last_refusal_ && !problem.empty()) LogWarn("{}", problem);
  last_refusal_ = problem;
}

Status LiveKeys::Take(std::string_view pem) {
  if (pem.empty()) return OkStatus();
  const std::shared_ptr<const KeyFolder> now = Now();
  if (pem != now->revoked.ToPem()) {
    StatusOr<Revocations> list =
        Revocations::Parse(pem, now->authority, "what the tracker has sent");
    KILN_RETURN_IF_ERROR(Annotate(list.status(), "a list of revoked certificates is not taken"));
    Adopt(now->authority, *std::move(list));
  }
  return Save();
}

void LiveKeys::Adopt(const Certificate& authority, Revocations list) {
  const std::lock_guard lock(mutex_);
  if (!good_->authority.Equals(authority) || list.number() <= good_->revoked.number()) return;
  LogInfo("took the farm's list {} of revoked certificates", list.number());
  KeyFolder newer = *good_;
  newer.revoked = std::move(list);
  good_ = std::make_shared<const KeyFolder>(std::move(newer));
}

// Writes the list that holds into the folder if the folder's is older. Others may read the keys
// meanwhile.
Status LiveKeys::Save() {
  std::shared_ptr<const KeyFolder> now;
  {
    const std::lock_guard lock(mutex_);
    if (good_->revoked.number() <= written_) return OkStatus();
    now = good_;
  }
  const int64_t number = now->revoked.number();
  const Status written = WriteRevocations(path_, now->revoked, now->authority, clock_);
  if (!written.ok()) {
    return Annotate(written, fmt::format("list {} of revoked certificates holds in this process "
                                         "alone, until it ends; expected a folder of keys that "
                                         "user {} can write",
                                         number, geteuid()));
  }
  const std::lock_guard lock(mutex_);
  written_ = std::max(written_, number);
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
  stamps_ = stamps;
  written_ = folder.revoked.number();
  if (good_ != nullptr) KeepNewerRevocations(folder);
  good_ = std::make_shared<const KeyFolder>(std::move(folder));
  return OkStatus();
}

// An older list may come back with a copy of the folder; it brings nobody back.
void LiveKeys::KeepNewerRevocations(KeyFolder& folder) const {
  const Revocations& held = good_->revoked;
  if (!good_->authority.Equals(folder.authority)) return;
  if (held.number() <= folder.revoked.number()) return;
  LogWarn("{} has list {} of revoked certificates, and the newer list {} goes on to hold", path_,
          folder.revoked.number(), held.number());
  folder.revoked = held;
}

}  // namespace kiln
