// The folder with which a process takes part in a farm: its key, its certificate, and what it
// believes of others.
//
//   identity.pem    certificate and private key, mode 0600. They are one file, so that a renewal
//                   replaces both at once
//   authority.pem   certificate of the farm's authority
//   revoked.pem     the certificates that the authority has revoked
//
// A folder is made where the authority is (base/keys/authority_folder.h) and copied to the machine
// that uses it.
#pragma once

#include <array>
#include <string>

#include "base/clock.h"
#include "base/keys/certificate.h"
#include "base/keys/private_key.h"
#include "base/keys/revocations.h"
#include "base/status.h"

namespace kiln {

struct KeyFolder {
  Certificate certificate;
  PrivateKey key;
  Certificate authority;
  Revocations revoked;
};

// Reads the folder and checks that its parts belong together. Whether the certificate is valid now
// is Verify's matter (base/keys/verify.h). Errors name the file and the command that mends it, and
// hold nothing of the key. FailedPrecondition if the mode of identity.pem gives any right to its
// group or to others. The files are read one after the other: a reader that meets a folder while it
// is being copied gets an error, and reads again.
StatusOr<KeyFolder> ReadKeyFolder(const std::string& path);

// Returns the paths of identity.pem, authority.pem and revoked.pem.
std::array<std::string, 3> KeyFolderFiles(const std::string& path);

// Makes the folder, mode 0700, or replaces its files, each of them whole or not at all. The list of
// revocations is written as by WriteRevocations. `clock` measures the wait for other processes.
Status WriteKeyFolder(const std::string& path, const KeyFolder& folder,
                      Clock& clock = Clock::Real());
// Replaces revoked.pem, unless it is a list of `authority` with the same number or a larger one: no
// list takes the place of a newer one. Processes that write into one folder at once wait for each
// other. Unavailable if another process keeps the folder locked for 10 s.
Status WriteRevocations(const std::string& path, const Revocations& revoked,
                        const Certificate& authority, Clock& clock = Clock::Real());
// Reads revoked.pem of the folder, which `authority` has signed. Errors are those of ReadKeyFolder.
StatusOr<Revocations> ReadRevocations(const std::string& path, const Certificate& authority);

}  // namespace kiln
