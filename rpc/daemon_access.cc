#include "rpc/daemon_access.h"

#include "base/keys/role.h"
#include "base/server/net.h"

namespace kiln {

StatusOr<FarmAccess> OpenAccess(const DaemonFlags& flags) {
  KILN_ASSIGN_OR_RETURN(const HostPort address, ParseListenAddress(flags.listen));
  KILN_ASSIGN_OR_RETURN(FarmAccess access, FarmAccess::Open(flags.keys_folder, flags.secret_file));
  if (access.keys() == nullptr) {
    if (flags.insecure || IsLoopback(address)) return access;
    return FailedPrecondition(
        "other machines can reach {}, and whoever does could run programs here: make the keys of "
        "the farm with `kiln keys init` and give this daemon its own with --keys FOLDER, or say "
        "--insecure where the network can be trusted",
        flags.listen);
  }
  KILN_ASSIGN_OR_RETURN(const Identity self, access.Self());
  if (MayServe(self.role)) return access;
  return FailedPrecondition(
      "{} has the keys of {} with the role {}, expected those of a daemon: `kiln keys issue NAME "
      "--role work` makes some",
      access.keys()->path(), self.name, RoleName(self.role));
}

}  // namespace kiln
