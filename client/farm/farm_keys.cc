#include "client/farm/farm_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "base/keys/authority_folder.h"
#include "base/keys/key_folder.h"
#include "base/keys/verify.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kRenewWithin = absl::Hours(24 * 30);

StatusOr<AuthorityFolder> OpenOrMake(const std::string& path, Clock& clock) {
  StatusOr<AuthorityFolder> folder = AuthorityFolder::Open(path, {.clock = &clock});
  if (folder.status().code() != StatusCode::kNotFound) return folder;
  return AuthorityFolder::Init(path, {.clock = &clock});
}

// Returns whether the folder of the name has a key that holds for a while.
StatusOr<bool> HasKeys(const AuthorityFolder& folder, const std::string& name, absl::Time now) {
  const std::string path = folder.FolderOf(name);
  if (!FileExists(path)) return false;
  KILN_ASSIGN_OR_RETURN(const KeyFolder keys, ReadKeyFolder(path));
  const StatusOr<Identity> holder =
      Verify(keys.certificate, folder.authority().certificate(), keys.revoked, now);
  return holder.ok() && holder->expires - now > kRenewWithin;
}

// Makes sure that the member has keys. A role that the name has already stays, and what was revoked
// comes back by `kiln keys issue` alone.
Status Ensure(AuthorityFolder& folder, const Member& member, absl::Time now) {
  KILN_ASSIGN_OR_RETURN(const bool has_keys, HasKeys(folder, member.name, now));
  if (has_keys) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const std::vector<Issued> all, folder.List());
  const bool is_known = std::ranges::any_of(
      all, [&](const Issued& issued) { return issued.identity.name == member.name; });
  if (!is_known) return folder.Issue(member, kDefaultDays, /*replace=*/false).status();
  return Annotate(folder.Renew(member.name, kDefaultDays).status(), folder.path());
}

}  // namespace

std::string MemberOfUser(std::string_view user) {
  const bool is_name = CheckMemberName(user).ok() && user != kDaemonsName && user != "authority";
  return is_name ? std::string(user) : "user";
}

StatusOr<FarmKeys> MakeFarmKeys(const std::string& authority, const std::string& user,
                                Clock& clock) {
  KILN_ASSIGN_OR_RETURN(AuthorityFolder folder, OpenOrMake(authority, clock));
  const absl::Time now = clock.Now();
  KILN_RETURN_IF_ERROR(Ensure(folder, {kDaemonsName, Role::kWork}, now));
  KILN_RETURN_IF_ERROR(Ensure(folder, {user, Role::kAdmin}, now));
  return FarmKeys{folder.FolderOf(kDaemonsName), folder.FolderOf(user)};
}

}  // namespace kiln::client
