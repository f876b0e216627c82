// Signatures of texts by members of a farm: ECDSA over P-256 with SHA-256. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/keys/certificate.h"
#include "base/keys/private_key.h"
#include "base/status.h"

namespace kiln {

// Returns the signature in DER form, some 70 bytes. Costs 25 us. Internal if OpenSSL fails.
StatusOr<std::string> SignText(const PrivateKey& key, std::string_view text);

// Returns whether the key of the certificate made the signature of the text. Whose certificate it
// is, is Verify's matter (base/keys/verify.h). Costs some 80 us.
bool IsSignature(std::string_view signature, std::string_view text, const Certificate& certificate);

// Returns the certificate in DER form, less than 1 KiB for ours.
std::string DerOf(const Certificate& certificate);
// Returns nothing for bytes that are no certificate, or more than one, and for more than 16 KiB.
std::optional<Certificate> CertificateFromDer(std::string_view der);

}  // namespace kiln
