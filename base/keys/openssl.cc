#include "base/keys/openssl.h"

#include <openssl/err.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "base/keys/identity.h"

namespace kiln::openssl {

ErrorScope::ErrorScope() { ERR_clear_error(); }

ErrorScope::~ErrorScope() { ERR_clear_error(); }

Status ErrorScope::Failed(std::string_view what) const {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return Internal("OpenSSL cannot {}: {}", what, reason == nullptr ? "no reason given" : reason);
}

Bio Reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(std::min(text.size(), kMaxPemBytes))));
}

std::string Written(BIO* bio) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

int NoPassPhrase(char*, int, int, void*) { return -1; }

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

Time FromTime(absl::Time time) { return Time(ASN1_TIME_set(nullptr, absl::ToTimeT(time))); }

std::string SerialText(const ASN1_INTEGER* serial) {
  const BigNumber number(ASN1_INTEGER_to_BN(serial, nullptr));
  char* const digits = number == nullptr ? nullptr : BN_bn2hex(number.get());
  std::string text = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (text.size() < kSerialDigits) text.insert(0, kSerialDigits - text.size(), '0');
  return text;
}

Integer SerialNumber(const std::string& hex) {
  BIGNUM* number = nullptr;
  if (BN_hex2bn(&number, hex.c_str()) == 0) return nullptr;
  const BigNumber owned(number);
  return Integer(BN_to_ASN1_INTEGER(number, nullptr));
}

}  // namespace kiln::openssl
