#include "base/keys/key_folder.h"

#include <utility>

#include "base/file/file.h"
#include "base/file/file_lock.h"
#include "base/file/private_file.h"
#include "base/keys/authority.h"
#include "base/keys/openssl.h"

namespace kiln {
namespace {

constexpr char kIdentity[] = "identity.pem";
constexpr char kAuthority[] = "authority.pem";
constexpr char kRevoked[] = "revoked.pem";
constexpr PrivateContent kContent{"private key",
                                  "copy the folder that `kiln keys issue NAME --role ROLE` makes"};

// The certificates and the list are no secrets; their folder keeps others out.
constexpr int kPublicMode = 0644;
constexpr int kPrivateMode = 0600;
// Changes take milliseconds. A lock that is kept for longer is a process that hangs.
constexpr absl::Duration kLockPatience = absl::Seconds(10);

StatusOr<std::string> ReadPart(const std::string& path) {
  StatusOr<std::string> text = ReadFile(path, openssl::kMaxPemBytes);
  if (text.ok()) return text;
  return Status(text.status().code(),
                fmt::format("{}; expected a folder of keys, as `kiln keys issue NAME --role ROLE` "
                            "makes one where the farm's authority is",
                            Message(text.status())));
}

}  // namespace

StatusOr<KeyFolder> ReadKeyFolder(const std::string& path) {
  const auto [identity, authority, unused] = KeyFolderFiles(path);
  StatusOr<std::string> pem = ReadPrivateFile(identity, kContent, openssl::kMaxPemBytes);
  if (pem.status().code() == StatusCode::kNotFound) {
    return NotFound("{}; {}", Message(pem.status()), kContent.remedy);
  }
  KILN_RETURN_IF_ERROR(pem.status());
  KILN_ASSIGN_OR_RETURN(Certificate certificate, Certificate::Parse(*pem, identity));
  KILN_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Parse(*pem, identity));
  if (!key.Matches(certificate)) {
    return FailedPrecondition(
        "{} has the certificate of '{}' with the key of another one; copy the file anew from where "
        "the farm's authority is",
        identity, certificate.CommonName());
  }
  KILN_ASSIGN_OR_RETURN(const std::string authority_pem, ReadPart(authority));
  KILN_ASSIGN_OR_RETURN(Certificate trusted, Certificate::Parse(authority_pem, authority));
  KILN_RETURN_IF_ERROR(CheckAuthority(trusted, authority));
  KILN_ASSIGN_OR_RETURN(Revocations list, ReadRevocations(path, trusted));
  return KeyFolder{std::move(certificate), std::move(key), std::move(trusted), std::move(list)};
}

std::array<std::string, 3> KeyFolderFiles(const std::string& path) {
  return {JoinPath(path, kIdentity), JoinPath(path, kAuthority), JoinPath(path, kRevoked)};
}

Status WriteKeyFolder(const std::string& path, const KeyFolder& folder, Clock& clock) {
  KILN_RETURN_IF_ERROR(MakePrivateDir(path));
  KILN_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(path, kAuthority), folder.authority.ToPem(), kPublicMode));
  KILN_RETURN_IF_ERROR(WriteRevocations(path, folder.revoked, folder.authority, clock));
  // The identity comes last: a folder that has one is complete.
  return WriteFileAtomically(JoinPath(path, kIdentity),
                             folder.certificate.ToPem() + folder.key.ToPem(), kPrivateMode);
}

StatusOr<Revocations> ReadRevocations(const std::string& path, const Certificate& authority) {
  const std::string file = JoinPath(path, kRevoked);
  KILN_ASSIGN_OR_RETURN(const std::string pem, ReadPart(file));
  return Revocations::Parse(pem, authority, file);
}

Status WriteRevocations(const std::string& path, const Revocations& revoked,
                        const Certificate& authority, Clock& clock) {
  KILN_ASSIGN_OR_RETURN(const FileLock lock, FileLock::AcquireFolder(path, kLockPatience, clock));
  // A list that is missing, damaged or another farm's is replaced.
  const StatusOr<Revocations> there = ReadRevocations(path, authority);
  if (there.ok() && there->number() >= revoked.number()) return OkStatus();
  return WriteFileAtomically(JoinPath(path, kRevoked), revoked.ToPem(), kPublicMode);
}

}  // namespace kiln
