#include "base/keys/authority.h"

#include <openssl/pem.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/keys/openssl.h"

namespace kiln {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);

// Builds a certificate. After the first step that fails the others do nothing.
class Builder {
 public:
  Builder() : certificate_(X509_new()) {
    Note(certificate_ != nullptr && X509_set_version(certificate_.get(), X509_VERSION_3) == 1);
  }

  Builder& Serial(const std::string& hex) {
    const openssl::Integer serial = openssl::SerialNumber(hex);
    return Note(serial != nullptr && X509_set_serialNumber(certificate_.get(), serial.get()) == 1);
  }
  Builder& Span(absl::Time begin, absl::Time end) {
    const openssl::Time from = openssl::FromTime(begin), to = openssl::FromTime(end);
    return Note(from != nullptr && to != nullptr &&
                X509_set1_notBefore(certificate_.get(), from.get()) == 1 &&
                X509_set1_notAfter(certificate_.get(), to.get()) == 1);
  }
  Builder& Subject(const std::string& name) {
    return Note(X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate_.get()),
                                           NID_commonName, MBSTRING_UTF8,
                                           reinterpret_cast<const unsigned char*>(name.data()),
                                           static_cast<int>(name.size()), -1, 0) == 1);
  }
  // Null: the certificate itself is the issuer's.
  Builder& Issuer(X509* issuer) {
    issuer_ = issuer == nullptr ? certificate_.get() : issuer;
    return Note(X509_set_issuer_name(certificate_.get(), X509_get_subject_name(issuer_)) == 1);
  }
  Builder& PublicKey(const PrivateKey& key) {
    return Note(X509_set_pubkey(certificate_.get(), key.handle()) == 1);
  }
  // `value` is a constant of ours in OpenSSL's own syntax.
  Builder& Extension(int nid, const char* value) {
    X509V3_CTX context{};
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer_, certificate_.get(), nullptr, nullptr, 0);
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    Note(extension != nullptr && X509_add_ext(certificate_.get(), extension, -1) == 1);
    X509_EXTENSION_free(extension);
    return *this;
  }
  // The names go in as they are, since a name in OpenSSL's syntax could bring others with it.
  Builder& Names(const std::vector<std::pair<int, std::string>>& names) {
    GENERAL_NAMES* const list = sk_GENERAL_NAME_new_null();
    for (const auto& [type, text] : names) {
      GENERAL_NAME* const name = GENERAL_NAME_new();
      ASN1_IA5STRING* const string = ASN1_IA5STRING_new();
      Note(ASN1_STRING_set(string, text.data(), static_cast<int>(text.size())) == 1);
      GENERAL_NAME_set0_value(name, type, string);
      sk_GENERAL_NAME_push(list, name);
    }
    Note(X509_add1_ext_i2d(certificate_.get(), NID_subject_alt_name, list, 0, 0) == 1);
    GENERAL_NAMES_free(list);
    return *this;
  }
  StatusOr<Certificate> Sign(const PrivateKey& key) {
    if (good_) Note(X509_sign(certificate_.get(), key.handle(), EVP_sha256()) > 0);
    if (!good_) return errors_.Failed("make a certificate");
    return Certificate::Own(certificate_.release());
  }

 private:
  Builder& Note(bool good) {
    good_ = good_ && good;
    return *this;
  }

  const openssl::ErrorScope errors_;
  openssl::X509Certificate certificate_;
  X509* issuer_ = nullptr;
  bool good_ = true;
};

// Adds the certificate to a list of revocations.
bool AddEntry(X509_CRL* list, const std::string& serial, absl::Time when) {
  const openssl::Owned<X509_REVOKED, X509_REVOKED_free> owner(X509_REVOKED_new());
  const openssl::Integer number = openssl::SerialNumber(serial);
  const openssl::Time time = openssl::FromTime(when);
  if (owner == nullptr || number == nullptr || time == nullptr) return false;
  if (X509_REVOKED_set_serialNumber(owner.get(), number.get()) != 1 ||
      X509_REVOKED_set_revocationDate(owner.get(), time.get()) != 1) {
    return false;
  }
  X509_REVOKED* const copy = X509_REVOKED_dup(owner.get());
  if (copy == nullptr) return false;
  if (X509_CRL_add0_revoked(list, copy) == 1) return true;
  X509_REVOKED_free(copy);
  return false;
}

bool AddNumber(X509_CRL* list, int64_t number) {
  const openssl::Integer integer(ASN1_INTEGER_new());
  return integer != nullptr && ASN1_INTEGER_set_int64(integer.get(), number) == 1 &&
         X509_CRL_add1_ext_i2d(list, NID_crl_number, integer.get(), 0, 0) == 1;
}

}  // namespace

Status CheckDays(int days) {
  if (days >= 1 && days <= kMostDays) return OkStatus();
  return InvalidArgument("{} days were asked for, expected 1 to {}, as in --days {}", days,
                         kMostDays, kDefaultDays);
}

Status CheckAuthority(const Certificate& certificate, std::string_view where) {
  const openssl::ErrorScope errors;
  // X509_check_ca returns 1 for a certificate that says so itself, by its extension.
  const bool good = X509_check_ca(certificate.handle()) == 1 &&
                    X509_verify(certificate.handle(), X509_get0_pubkey(certificate.handle())) == 1;
  if (good) return OkStatus();
  return FailedPrecondition(
      "{} holds the certificate of '{}', which is no authority of a farm, expected one that `kiln "
      "keys init` has made",
      where, certificate.CommonName());
}

StatusOr<Authority> Authority::Make(std::string_view farm, const std::string& serial,
                                    absl::Time now) {
  KILN_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  KILN_ASSIGN_OR_RETURN(Certificate certificate,
                        Builder()
                            .Serial(serial)
                            .Span(now - kClockTolerance, now + kAuthorityDays * kDay)
                            .Subject(fmt::format("Kiln farm {}", farm))
                            .PublicKey(key)
                            .Issuer(nullptr)
                            .Extension(NID_basic_constraints, "critical,CA:TRUE,pathlen:0")
                            .Extension(NID_key_usage, "critical,keyCertSign,cRLSign")
                            .Extension(NID_subject_key_identifier, "hash")
                            .Sign(key));
  return Authority(std::move(certificate), std::move(key));
}

StatusOr<Authority> Authority::Join(Certificate certificate, PrivateKey key) {
  KILN_RETURN_IF_ERROR(CheckAuthority(certificate, "the folder of the authority"));
  if (key.Matches(certificate)) return Authority(std::move(certificate), std::move(key));
  return FailedPrecondition(
      "the private key is not that of the authority '{}': one of the two files is another farm's; "
      "put both back from a copy of the folder",
      certificate.CommonName());
}

StatusOr<Certificate> Authority::Issue(const Member& member, const PrivateKey& key, int days,
                                       const std::string& serial, absl::Time now) const {
  KILN_RETURN_IF_ERROR(CheckMemberName(member.name));
  KILN_RETURN_IF_ERROR(CheckDays(days));
  if (now < certificate_.begins()) {
    return FailedPrecondition(
        "this machine's clock says {}, and the farm's authority began on {}; expected a clock that "
        "is right: `timedatectl set-ntp true`",
        UtcText(now), UtcText(certificate_.begins()));
  }
  const absl::Time end = now + days * kDay;
  if (end > certificate_.ends()) {
    return InvalidArgument(
        "a certificate of {} days would outlive the farm's authority, which ends on {}; ask for "
        "fewer days, or make a new authority with `kiln keys init`",
        days, UtcText(certificate_.ends()));
  }
  const bool serves = MayServe(member.role);
  std::vector<std::pair<int, std::string>> names = {{GEN_URI, MemberUri(member)}};
  if (serves) names.emplace_back(GEN_DNS, kDaemonHost);
  return Builder()
      .Serial(serial)
      .Span(now - kClockTolerance, end)
      .Subject(member.name)
      .PublicKey(key)
      .Issuer(certificate_.handle())
      .Extension(NID_basic_constraints, "critical,CA:FALSE")
      .Extension(NID_key_usage, "critical,digitalSignature")
      .Extension(NID_ext_key_usage, serves ? "serverAuth,clientAuth" : "clientAuth")
      .Extension(NID_subject_key_identifier, "hash")
      .Extension(NID_authority_key_identifier, "keyid:always")
      .Names(names)
      .Sign(key_);
}

StatusOr<Revocations> Authority::Revoke(const Revocations::Entries& entries, int64_t number,
                                        absl::Time now) const {
  const openssl::ErrorScope errors;
  const openssl::X509List list(X509_CRL_new());
  const openssl::Time made = openssl::FromTime(now);
  const openssl::Time next = openssl::FromTime(std::max(certificate_.ends(), now + kDay));
  bool good =
      list != nullptr && made != nullptr && next != nullptr &&
      X509_CRL_set_version(list.get(), X509_CRL_VERSION_2) == 1 &&
      X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.handle())) == 1 &&
      X509_CRL_set1_lastUpdate(list.get(), made.get()) == 1 &&
      X509_CRL_set1_nextUpdate(list.get(), next.get()) == 1;
  for (const auto& [serial, when] : entries) good = good && AddEntry(list.get(), serial, when);
  good = good && AddNumber(list.get(), number) && X509_CRL_sort(list.get()) == 1 &&
         X509_CRL_sign(list.get(), key_.handle(), EVP_sha256()) > 0;
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  if (!good || PEM_write_bio_X509_CRL(bio.get(), list.get()) != 1) {
    return errors.Failed("make a list of revocations");
  }
  return Revocations::Parse(openssl::Written(bio.get()), certificate_, "the new list");
}

}  // namespace kiln
