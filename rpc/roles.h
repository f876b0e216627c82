// The role that each call asks for: one table for all services. Which role may do what another may
// says base/keys/role.h; docs/keys.md prints the table for people.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/keys/identity.h"
#include "base/keys/role.h"
#include "base/status.h"

namespace kiln {

struct CallRole {
  // The path of a call, "/kiln.v1.Scheduler/Submit".
  std::string_view method;
  // The least role of a caller.
  Role least = Role::kAdmin;
  // For a call that acts on a job, which belongs to somebody: the least role of a caller to whom it
  // does not belong. None: only the owner. Other calls have the least role here, too.
  std::optional<Role> least_for_others;
};

// Returns the rows of all RPCs of proto/ and of the other services of a daemon, ordered by method.
std::span<const CallRole> CallRoles();

// Returns "Scheduler.Submit" for "/kiln.v1.Scheduler/Submit". Another method may be a stranger's
// text: one line of at most 80 bytes.
std::string CallName(std::string_view method);

// OK if the caller has the role that the call asks for. PermissionDenied otherwise, with both roles
// and the command that gives another one. Unimplemented for a call without a row: what nobody has
// thought about is closed.
Status CheckRole(const Identity& caller, std::string_view method);

// OK if the caller owns the thing that the call acts on, or has the role for those of others.
// `thing` names it in messages: "job 1f740d66". CheckRole is asked first.
Status CheckOwner(const Identity& caller, std::string_view owner, std::string_view method,
                  std::string_view thing);

}  // namespace kiln
