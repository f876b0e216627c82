// The roles of people and daemons in a farm. A certificate carries one.
//
//             admin                 the farm itself: what no operator decides
//               |
//            operate                everybody's jobs, records and workers
//               |
//             submit     work       jobs of one's own  |  what daemons do for each other
//                  \     /
//                   read            looks
//
// A role may do what the roles below it may. `work` stands beside the roles of people: the key of a
// worker's machine, where strangers' code runs, submits and deletes nothing, and no person's key,
// not even an admin's, announces a worker, holds a lease or answers as a daemon.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

enum class Role { kRead, kSubmit, kWork, kOperate, kAdmin };

inline constexpr std::array kRoles = {Role::kRead, Role::kSubmit, Role::kWork, Role::kOperate,
                                      Role::kAdmin};

// Returns "read", "submit", ...
std::string_view RoleName(Role role);
// Returns the role of a name. InvalidArgument for another word, with the names.
StatusOr<Role> ParseRole(std::string_view name);
// Returns "read, submit, work, operate or admin".
std::string RoleNames();

// Returns whether a holder of `held` may do what asks for `needed`.
bool Permits(Role held, Role needed);

// Returns whether a holder of the role is a daemon: only daemons may answer calls.
constexpr bool MayServe(Role role) { return role == Role::kWork; }

}  // namespace kiln
