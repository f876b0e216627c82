#include "base/process/user_name.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace kiln {

std::string UserName() {
  const char* const variable = std::getenv("USER");
  if (variable != nullptr && *variable != '\0') return variable;
  std::array<char, 4096> buffer;
  passwd entry, *found = nullptr;
  const bool known =
      getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : fmt::format("user {}", geteuid());
}

}  // namespace kiln
