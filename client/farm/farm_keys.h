// The keys of a farm on this machine: a key of its daemons and one of its user, from an authority
// in a folder of this machine.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"

namespace kiln::client {

// The daemons' name in their certificate.
inline constexpr char kDaemonsName[] = "daemons";

// Folders of keys (base/keys/key_folder.h).
struct FarmKeys {
  std::string daemons;
  std::string user;
};

// Returns `user` (base/process/user_name.h) if it is the name of a member, and "user" otherwise.
std::string MemberOfUser(std::string_view user);

// Returns the keys of the daemons and of `user`, who is a member's name, from the authority in the
// folder `authority` (base/keys/authority_folder.h). What is missing is made: the authority; a key
// with the role `work` for the daemons; one with the role `admin` for the user, whose farm it is. A
// key that has ended, or ends within 30 days, is renewed, and keeps its role. NotFound, with the
// command that makes a new one, if it was revoked. Other errors are those of AuthorityFolder and
// ReadKeyFolder.
StatusOr<FarmKeys> MakeFarmKeys(const std::string& authority, const std::string& user,
                                Clock& clock);

}  // namespace kiln::client
