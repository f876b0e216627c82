#include "base/keys/authority_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>

#include "base/errno_status.h"
#include "base/file/file.h"
#include "base/file/file_lock.h"
#include "base/file/private_file.h"
#include "base/hash/unique_id.h"
#include "base/keys/key_folder.h"
#include "base/keys/openssl.h"
#include "base/text/shell_word.h"

namespace kiln {
namespace {

constexpr char kOwn[] = "authority";
constexpr char kKey[] = "key.pem";
constexpr char kCertificate[] = "certificate.pem";
constexpr char kRevoked[] = "revoked.pem";
constexpr char kIssued[] = "issued";
constexpr char kLock[] = "lock";
constexpr char kSuffix[] = ".pem";
constexpr int kPublicMode = 0644;
constexpr int kPrivateMode = 0600;
constexpr int kFarmDigits = 8;
// Changes take milliseconds. A lock that is kept for longer is a process that hangs.
constexpr absl::Duration kLockPatience = absl::Seconds(10);
// A serial number that comes a second time is a broken source of random numbers.
constexpr int kSerialAttempts = 3;

constexpr PrivateContent kContent{"authority's private key",
                                  "put it back from a copy of the folder"};

bool IsSerial(std::string_view text) {
  return text.size() == kSerialDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status CheckFreeName(const Member& member) {
  KILN_RETURN_IF_ERROR(CheckMemberName(member.name));
  if (member.name != kOwn && !IsSerial(member.name)) return OkStatus();
  return InvalidArgument(
      "the name '{}' is taken by the authority itself, expected another one, as in box1 or alice",
      member.name);
}

// Makes the files of a new authority in `folder`, which is not yet in its place.
Status Fill(const std::string& folder, const Authority& authority, absl::Time now) {
  KILN_RETURN_IF_ERROR(MakePrivateDir(JoinPath(folder, kIssued)));
  KILN_ASSIGN_OR_RETURN(const Revocations none, authority.Revoke({}, 0, now));
  KILN_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, kRevoked), none.ToPem(), kPublicMode));
  KILN_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(folder, kCertificate),
                                           authority.certificate().ToPem(), kPublicMode));
  return WriteFileAtomically(JoinPath(folder, kKey), authority.key().ToPem(), kPrivateMode);
}

// Moves the folder to its place. It takes the place of an empty folder only, so that of two
// processes one makes the authority.
Status Place(const std::string& made, const std::string& own) {
  if (std::rename(made.c_str(), own.c_str()) == 0) return OkStatus();
  const int error = errno;
  return ErrnoStatus(error == ENOTEMPTY ? EEXIST : error, "cannot make the folder {}", own);
}

StatusOr<Issued> ReadIssued(const std::string& path, const Revocations& revoked) {
  KILN_ASSIGN_OR_RETURN(const std::string pem, ReadFile(path, openssl::kMaxPemBytes));
  StatusOr<Certificate> certificate = Certificate::Parse(pem, path);
  if (!certificate.ok()) {
    return DataLoss(
        "{} holds no certificate that can be read; put it back from a copy of the "
        "folder, or delete it if nobody has the certificate",
        path);
  }
  KILN_ASSIGN_OR_RETURN(const Member member, certificate->GetMember());
  const std::string serial = certificate->Serial();
  return Issued{{member.name, member.role, serial, certificate->ends()},
                certificate->begins() + kClockTolerance,
                revoked.RevokedAt(serial)};
}

// Returns the paths of the certificates in the folder.
StatusOr<std::vector<std::string>> CertificatesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    // Others are files that a process was writing when it died.
    if (name.ends_with(kSuffix) && IsSerial(name.substr(0, name.size() - 4))) {
      paths.push_back(entries->path().string());
    }
  }
  if (error) return ErrnoStatus(error.value(), "cannot read the folder {}", folder);
  return paths;
}

Status AlreadyHas(const Issued& held) {
  const Identity& who = held.identity;
  return AlreadyExists(
      "{} has a certificate with the role {} until {}; `kiln keys renew {}` makes a newer one, and "
      "--replace revokes it first",
      who.name, RoleName(who.role), UtcText(who.expires), who.name);
}

}  // namespace

AuthorityFolder::AuthorityFolder(std::string path, Authority authority, Sources sources)
    : path_(std::move(path)), authority_(std::move(authority)), sources_(std::move(sources)) {
  if (sources_.random_hex == nullptr) {
    sources_.random_hex = [](int digits) { return UniqueId(digits); };
  }
}

StatusOr<AuthorityFolder> AuthorityFolder::Init(const std::string& path, Sources sources) {
  const std::string own = JoinPath(path, kOwn);
  const auto exists = [&] {
    return AlreadyExists(
        "{} has an authority already: `kiln keys issue` makes certificates with it, and "
        "--authority "
        "FOLDER names a folder for another one",
        path);
  };
  if (FileExists(own)) return exists();
  if (sources.random_hex == nullptr) sources.random_hex = [](int n) { return UniqueId(n); };
  const absl::Time now = sources.clock->Now();
  KILN_ASSIGN_OR_RETURN(
      Authority authority,
      Authority::Make(sources.random_hex(kFarmDigits), sources.random_hex(kSerialDigits), now));
  KILN_RETURN_IF_ERROR(MakePrivateDir(path));
  KILN_RETURN_IF_ERROR(CheckPrivateDir(path));
  const std::string made = fmt::format("{}.{}.tmp", own, UniqueId(8));
  KILN_RETURN_IF_ERROR(MakePrivateDir(made));
  Status filled = Fill(made, authority, now);
  if (filled.ok()) filled = Place(made, own);
  if (filled.code() == StatusCode::kAlreadyExists) filled = exists();
  if (!filled.ok()) {
    RemoveTree(made).IgnoreError();
    return filled;
  }
  return AuthorityFolder(path, std::move(authority), std::move(sources));
}

StatusOr<AuthorityFolder> AuthorityFolder::Open(const std::string& path, Sources sources) {
  const std::string own = JoinPath(path, kOwn);
  const std::string key_path = JoinPath(own, kKey);
  const std::string certificate_path = JoinPath(own, kCertificate);
  if (!FileExists(own)) {
    return NotFound(
        "there is no authority in {}, expected the folder that `kiln keys init` has made: name it "
        "with --authority FOLDER, or make one with `kiln keys init --authority {}`",
        path, ShellWord(path));
  }
  KILN_RETURN_IF_ERROR(CheckPrivateDir(path));
  KILN_RETURN_IF_ERROR(CheckPrivateDir(own));
  KILN_ASSIGN_OR_RETURN(const std::string key_pem,
                        ReadPrivateFile(key_path, kContent, openssl::kMaxPemBytes));
  KILN_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Parse(key_pem, key_path));
  KILN_ASSIGN_OR_RETURN(const std::string pem, ReadFile(certificate_path, openssl::kMaxPemBytes));
  KILN_ASSIGN_OR_RETURN(Certificate certificate, Certificate::Parse(pem, certificate_path));
  KILN_ASSIGN_OR_RETURN(Authority authority,
                        Authority::Join(std::move(certificate), std::move(key)));
  return AuthorityFolder(path, std::move(authority), std::move(sources));
}

std::string AuthorityFolder::FolderOf(std::string_view name) const { return JoinPath(path_, name); }

StatusOr<Revocations> AuthorityFolder::OwnRevocations() const {
  const std::string file = JoinPath(JoinPath(path_, kOwn), kRevoked);
  KILN_ASSIGN_OR_RETURN(const std::string pem, ReadFile(file, openssl::kMaxPemBytes));
  return Revocations::Parse(pem, authority_.certificate(), file);
}

StatusOr<std::vector<Issued>> AuthorityFolder::List() const {
  KILN_ASSIGN_OR_RETURN(const Revocations revoked, OwnRevocations());
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                        CertificatesIn(JoinPath(JoinPath(path_, kOwn), kIssued)));
  std::vector<Issued> all;
  for (const std::string& path : paths) {
    KILN_ASSIGN_OR_RETURN(all.emplace_back(), ReadIssued(path, revoked));
  }
  std::ranges::sort(all, {}, [](const Issued& issued) {
    return std::tuple(issued.identity.name, issued.begins, issued.identity.expires,
                      issued.identity.serial);
  });
  return all;
}

StatusOr<std::string> AuthorityFolder::NewSerial() const {
  for (int i = 0; i < kSerialAttempts; ++i) {
    std::string serial = sources_.random_hex(kSerialDigits);
    const bool zero = serial.find_first_not_of('0') == std::string::npos;
    const std::string file = fmt::format("{}/{}/{}/{}{}", path_, kOwn, kIssued, serial, kSuffix);
    if (!zero && IsSerial(serial) && !FileExists(file)) return serial;
  }
  return Internal("the random numbers of this machine repeat; no certificate was issued");
}

StatusOr<Issued> AuthorityFolder::IssueLocked(const Member& member, int days) {
  const absl::Time now = sources_.clock->Now();
  KILN_ASSIGN_OR_RETURN(const Revocations revoked, OwnRevocations());
  KILN_ASSIGN_OR_RETURN(const std::string serial, NewSerial());
  KILN_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  KILN_ASSIGN_OR_RETURN(Certificate certificate, authority_.Issue(member, key, days, serial, now));
  const std::string file = fmt::format("{}/{}/{}/{}{}", path_, kOwn, kIssued, serial, kSuffix);
  // The list comes first: no certificate goes out that is not in it.
  KILN_RETURN_IF_ERROR(WriteFileAtomically(file, certificate.ToPem(), kPublicMode));
  KILN_RETURN_IF_ERROR(WriteKeyFolder(
      FolderOf(member.name),
      KeyFolder{certificate, std::move(key), authority_.certificate(), revoked}, *sources_.clock));
  return ReadIssued(file, revoked);
}

StatusOr<Issued> AuthorityFolder::Issue(const Member& member, int days, bool replace) {
  KILN_RETURN_IF_ERROR(CheckFreeName(member));
  KILN_RETURN_IF_ERROR(CheckDays(days));
  KILN_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(JoinPath(JoinPath(path_, kOwn), kLock), kLockPatience, *sources_.clock));
  KILN_ASSIGN_OR_RETURN(std::vector<Issued> held, List());
  const absl::Time now = sources_.clock->Now();
  std::erase_if(held, [&](const Issued& issued) {
    return issued.identity.name != member.name || !issued.IsCurrent(now);
  });
  if (!held.empty() && !replace) return AlreadyHas(held.back());
  if (!held.empty()) {
    KILN_RETURN_IF_ERROR(RevokeLocked(held));
  } else if (replace) {
    // An earlier attempt may have revoked it and stopped on the way.
    KILN_ASSIGN_OR_RETURN(const Revocations revoked, OwnRevocations());
    KILN_RETURN_IF_ERROR(SpreadRevocations(revoked));
  }
  return IssueLocked(member, days);
}

StatusOr<Issued> AuthorityFolder::Renew(const std::string& name, int days) {
  KILN_RETURN_IF_ERROR(CheckMemberName(name));
  KILN_RETURN_IF_ERROR(CheckDays(days));
  KILN_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(JoinPath(JoinPath(path_, kOwn), kLock), kLockPatience, *sources_.clock));
  KILN_ASSIGN_OR_RETURN(std::vector<Issued> held, List());
  std::erase_if(held, [&](const Issued& issued) { return issued.identity.name != name; });
  // One that was replaced at once began in the same second as the newest.
  std::erase_if(held,
                [newest = held.empty() ? absl::Time() : held.back().begins](const Issued& issued) {
                  return issued.begins < newest || issued.revoked.has_value();
                });
  if (held.empty()) {
    return NotFound(
        "{} has no certificate to renew: none was issued, or the newest is revoked; `kiln keys "
        "issue {} --role ROLE` makes one",
        name, name);
  }
  return IssueLocked({name, held.back().identity.role}, days);
}

// Returns the names whose folders are here. The user may have moved some to their machines.
StatusOr<std::vector<std::string>> AuthorityFolder::Members() const {
  KILN_ASSIGN_OR_RETURN(const std::vector<Issued> all, List());
  std::vector<std::string> names;
  std::string last;
  for (const Issued& issued : all) {
    const std::string& name = issued.identity.name;
    if (name != std::exchange(last, name) && FileExists(FolderOf(name))) names.push_back(name);
  }
  return names;
}

// The authority may have been put back from an old copy. Members leave a list that is no newer than
// theirs, so the next one continues the newest of all.
StatusOr<Revocations> AuthorityFolder::NewestRevocations(
    const std::vector<std::string>& names) const {
  KILN_ASSIGN_OR_RETURN(Revocations newest, OwnRevocations());
  for (const std::string& name : names) {
    StatusOr<Revocations> theirs = ReadRevocations(FolderOf(name), authority_.certificate());
    if (theirs.ok() && theirs->number() > newest.number()) newest = *std::move(theirs);
  }
  return newest;
}

Status AuthorityFolder::RevokeLocked(std::vector<Issued>& ended) {
  const absl::Time now = sources_.clock->Now();
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> names, Members());
  KILN_ASSIGN_OR_RETURN(const Revocations before, NewestRevocations(names));
  Revocations::Entries entries = before.entries();
  for (Issued& issued : ended) {
    issued.revoked = now;
    entries.emplace(issued.identity.serial, now);
  }
  KILN_ASSIGN_OR_RETURN(const Revocations after,
                        authority_.Revoke(entries, before.number() + 1, now));
  KILN_RETURN_IF_ERROR(
      WriteRevocations(JoinPath(path_, kOwn), after, authority_.certificate(), *sources_.clock));
  return SpreadRevocations(after);
}

// Goes on after a folder that cannot be written, and returns the first error.
Status AuthorityFolder::SpreadRevocations(const Revocations& revoked) const {
  KILN_ASSIGN_OR_RETURN(const std::vector<std::string> names, Members());
  Status first;
  for (const std::string& name : names) {
    const Status written =
        WriteRevocations(FolderOf(name), revoked, authority_.certificate(), *sources_.clock);
    if (written.ok() || !first.ok()) continue;
    first = Status(written.code(),
                   fmt::format("the authority has revoked what was asked, but the folder of {} "
                               "still has an older list: {}; mend that and give the same command "
                               "again",
                               name, Message(written)));
  }
  return first;
}

StatusOr<Revoked> AuthorityFolder::Revoke(const std::string& name_or_serial) {
  KILN_RETURN_IF_ERROR(CheckMemberName(name_or_serial));
  KILN_ASSIGN_OR_RETURN(
      const FileLock lock,
      FileLock::Acquire(JoinPath(JoinPath(path_, kOwn), kLock), kLockPatience, *sources_.clock));
  KILN_ASSIGN_OR_RETURN(std::vector<Issued> named, List());
  const absl::Time now = sources_.clock->Now();
  std::erase_if(named, [&](const Issued& issued) {
    const Identity& who = issued.identity;
    return (who.name != name_or_serial && who.serial != name_or_serial) || now > who.expires;
  });
  if (named.empty()) {
    return NotFound(
        "nothing to revoke: no certificate that holds has the name or the serial number {}; `kiln "
        "keys list` prints all",
        name_or_serial);
  }
  std::vector<Issued> held = named;
  std::erase_if(held, [&](const Issued& issued) { return !issued.IsCurrent(now); });
  if (held.empty()) {
    KILN_ASSIGN_OR_RETURN(const Revocations revoked, OwnRevocations());
    KILN_RETURN_IF_ERROR(SpreadRevocations(revoked));
    return Revoked{std::move(named), true};
  }
  KILN_RETURN_IF_ERROR(RevokeLocked(held));
  return Revoked{std::move(held), false};
}

}  // namespace kiln
