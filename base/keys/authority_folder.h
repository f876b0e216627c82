// The folder of a farm's authority, where members are made, listed and revoked.
//
//   authority/key.pem            the secret of the farm, mode 0600
//   authority/certificate.pem    certificate of the authority
//   authority/revoked.pem        the certificates that it has revoked
//   authority/issued/SERIAL.pem  every certificate that it has issued, without the key
//   authority/lock               held by the process that changes the folder
//   NAME/                        the folder for NAME (base/keys/key_folder.h), to be copied
//
// All folders have mode 0700. Nothing is kept beside the certificates and the list: who was issued
// what is read from them, so no index can disagree or lose an entry. A process that dies while it
// issues leaves at most a certificate in the list whose folder was not made; Renew makes it.
//
// Several processes may work on one folder at once. An object belongs to one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/keys/authority.h"
#include "base/keys/identity.h"
#include "base/keys/revocations.h"
#include "base/status.h"

namespace kiln {

// A certificate that the authority has issued.
struct Issued {
  Identity identity;
  // The time at which it was made.
  absl::Time begins;
  // Empty if it was not revoked.
  std::optional<absl::Time> revoked;

  bool IsCurrent(absl::Time now) const { return !revoked.has_value() && now <= identity.expires; }
};

// The result of Revoke.
struct Revoked {
  std::vector<Issued> certificates;
  // Whether they had been revoked earlier, so that the list alone was handed on again.
  bool earlier = false;
};

class AuthorityFolder {
 public:
  struct Sources {
    // Outlives the folder.
    Clock* clock = &Clock::Real();
    // Returns that many random hex digits. Null: the kernel's (base/hash/unique_id.h).
    std::function<std::string(int digits)> random_hex = nullptr;
  };

  // Makes a new authority in the folder. AlreadyExists if it has one.
  static StatusOr<AuthorityFolder> Init(const std::string& path, Sources sources);
  // NotFound, with the command that makes one, if the folder has no authority. FailedPrecondition
  // if the mode of the folder or of the key gives any right to the group or to others.
  static StatusOr<AuthorityFolder> Open(const std::string& path, Sources sources);

  // Issues a certificate with a new key and makes the folder of `member.name`. AlreadyExists if the
  // name has a certificate that holds, unless `replace`: then that one is revoked.
  StatusOr<Issued> Issue(const Member& member, int days, bool replace);
  // Issues a certificate with a new key to the name and role of the newest certificate of `name`,
  // which may have expired. The older one holds until its end, so that processes may go over one
  // after the other. NotFound if there is none, or if the newest is revoked.
  StatusOr<Issued> Renew(const std::string& name, int days);
  // Revokes all certificates of a name, or the one with a serial number, if they have not expired.
  // NotFound if there are none. The list goes into the folders of all members here. If one of them
  // cannot be written, the certificates are revoked all the same, the list goes into the others,
  // and the error says what to do. A call for certificates that are revoked hands the list on
  // again.
  StatusOr<Revoked> Revoke(const std::string& name_or_serial);
  // Returns all certificates, ordered by name, then by their beginning. Reads each.
  StatusOr<std::vector<Issued>> List() const;

  const std::string& path() const { return path_; }
  // Returns the folder of a member.
  std::string FolderOf(std::string_view name) const;
  const Authority& authority() const { return authority_; }

 private:
  AuthorityFolder(std::string path, Authority authority, Sources sources);

  StatusOr<Revocations> OwnRevocations() const;
  StatusOr<Revocations> NewestRevocations(const std::vector<std::string>& names) const;
  StatusOr<std::vector<std::string>> Members() const;
  StatusOr<std::string> NewSerial() const;
  StatusOr<Issued> IssueLocked(const Member& member, int days);
  Status RevokeLocked(std::vector<Issued>& ended);
  Status SpreadRevocations(const Revocations& revoked) const;

  std::string path_;
  Authority authority_;
  Sources sources_;
};

}  // namespace kiln
