#include "base/keys/role.h"

#include <vector>

#include "base/text/closest_names.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

// Returns the place of a person's role, from below.
int Rank(Role role) {
  switch (role) {
    case Role::kRead:
      return 0;
    case Role::kSubmit:
      return 1;
    case Role::kOperate:
      return 2;
    case Role::kAdmin:
      return 3;
    case Role::kWork:
      break;
  }
  return -1;
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kRead:
      return "read";
    case Role::kSubmit:
      return "submit";
    case Role::kWork:
      return "work";
    case Role::kOperate:
      return "operate";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

StatusOr<Role> ParseRole(std::string_view name) {
  std::vector<std::string> names;
  for (const Role role : kRoles) {
    if (RoleName(role) == name) return role;
    names.emplace_back(RoleName(role));
  }
  // A word of any length may come out of a file.
  const std::string_view shown = name.substr(0, 32);
  return InvalidArgument("there is no role '{}'{}, expected {}", OneLine(shown),
                         DidYouMean(shown, names), RoleNames());
}

std::string RoleNames() {
  std::string text;
  for (const Role role : kRoles) {
    if (!text.empty()) text += role == kRoles.back() ? " or " : ", ";
    text += RoleName(role);
  }
  return text;
}

bool Permits(Role held, Role needed) {
  if (held == needed || needed == Role::kRead) return true;
  if (held == Role::kWork || needed == Role::kWork) return false;
  return Rank(held) > Rank(needed);
}

}  // namespace kiln
