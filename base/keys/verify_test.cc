// Certificates that an authority issues, and those that are refused.
#include "base/keys/verify.h"

#include <openssl/x509v3.h>

#include <string>

#include "base/keys/authority.h"
#include "base/keys/keys_testing.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSerial[] = "0123456789abcdef0123";

auto Refused(const std::string& found, const std::string& mends) {
  return StatusIs(StatusCode::kUnauthenticated,
                  AllOf(HasSubstr(found), HasSubstr(mends), Not(HasSubstr("\n"))));
}

class VerifyTest : public testing::Test {
 protected:
  Certificate Issue(const Member& member, int days = 10) const {
    return TestCertificate(authority_, member, days, kSerial);
  }
  StatusOr<Identity> Check(const Certificate& certificate, absl::Time now = kTestNow) const {
    return Verify(certificate, authority_.certificate(), none_, now);
  }

  const Authority authority_ = TestAuthority();
  const Revocations none_ = *authority_.Revoke({}, 0, kTestNow);
};

TEST_F(VerifyTest, MembersOfEachRole) {
  for (const Role role : kRoles) {
    ASSERT_OK_AND_ASSIGN(const Identity identity, Check(Issue({"box1.example.org", role})));
    EXPECT_EQ(identity, (Identity{"box1.example.org", role, kSerial, kTestNow + absl::Hours(240)}));
  }
}

TEST_F(VerifyTest, OnlyDaemonsHaveTheUseAndTheNameOfAServer) {
  for (const Role role : kRoles) {
    const Certificate certificate = Issue({"box1", role});
    const bool daemon = role == Role::kWork;
    EXPECT_EQ(X509_check_purpose(certificate.handle(), X509_PURPOSE_SSL_SERVER, 0), daemon ? 1 : 0)
        << RoleName(role);
    EXPECT_EQ(X509_check_purpose(certificate.handle(), X509_PURPOSE_SSL_CLIENT, 0), 1);
    EXPECT_EQ(X509_check_host(certificate.handle(), kDaemonHost, 0, 0, nullptr), daemon ? 1 : 0);
    EXPECT_EQ(X509_get_key_usage(certificate.handle()), KU_DIGITAL_SIGNATURE);
    EXPECT_EQ(X509_check_ca(certificate.handle()), 0);
  }
}

TEST_F(VerifyTest, TheAuthoritySignsMembersAndNothingElse) {
  X509* const own = authority_.certificate().handle();
  EXPECT_EQ(X509_check_ca(own), 1);
  EXPECT_EQ(X509_get_pathlen(own), 0);
  EXPECT_EQ(X509_get_key_usage(own), KU_KEY_CERT_SIGN | KU_CRL_SIGN);
  EXPECT_OK(CheckAuthority(authority_.certificate(), "a.pem"));
  EXPECT_THAT(CheckAuthority(Issue({"alice", Role::kAdmin}), "a.pem"),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("a.pem holds the certificate of 'alice'"),
                             HasSubstr("kiln keys init"))));
  EXPECT_THAT(Authority::Join(authority_.certificate(), *PrivateKey::Make()),
              StatusIs(StatusCode::kFailedPrecondition,
                       HasSubstr("the private key is not that of the authority 'Kiln farm aa'")));
  EXPECT_OK(Authority::Join(authority_.certificate(), authority_.key()));
}

TEST_F(VerifyTest, WhatIsNotIssued) {
  const PrivateKey key = *PrivateKey::Make();
  const auto issue = [&](const Member& member, int days, absl::Time now) {
    return authority_.Issue(member, key, days, kSerial, now).status();
  };
  const auto refused = [](const std::string& why) {
    return StatusIs(StatusCode::kInvalidArgument, HasSubstr(why));
  };
  for (const int days : {0, -1, 3651, 100'000, -2'000'000'000}) {
    EXPECT_THAT(issue({"alice", Role::kRead}, days, kTestNow),
                refused(fmt::format("{} days were asked for, expected 1 to 3650", days)));
  }
  EXPECT_THAT(issue({"../alice", Role::kRead}, 1, kTestNow), refused("the name '../alice'"));
  EXPECT_THAT(issue({"a,URI:kiln:admin/a", Role::kRead}, 1, kTestNow), refused("the name 'a,URI"));
  const absl::Time late = authority_.certificate().ends() - absl::Hours(24 * 5);
  EXPECT_OK(issue({"alice", Role::kRead}, 4, late));
  EXPECT_THAT(issue({"alice", Role::kRead}, 6, late), refused("outlive the farm's authority"));
  EXPECT_THAT(
      issue({"alice", Role::kRead}, 6, kTestNow - absl::Hours(48)),
      StatusIs(StatusCode::kFailedPrecondition, AllOf(HasSubstr("this machine's clock says"),
                                                      HasSubstr("timedatectl set-ntp true"))));
}

TEST_F(VerifyTest, ClocksThatAreOff) {
  const Certificate certificate = Issue({"box1", Role::kWork});
  EXPECT_OK(Check(certificate, kTestNow - absl::Minutes(50)));
  EXPECT_THAT(Check(certificate, kTestNow - absl::Hours(20)),
              Refused("the certificate of box1 begins on 2027-01-15 07:00 UTC, and this machine's "
                      "clock says 2027-01-14 12:00 UTC",
                      "`timedatectl set-ntp true`"));
  EXPECT_OK(Check(certificate, kTestNow + absl::Hours(240)));
  EXPECT_THAT(Check(certificate, kTestNow + absl::Hours(240) + absl::Seconds(1)),
              Refused("the certificate of box1 ended on", "`kiln keys renew box1`"));
  // The clock is off by more than the authority's own time.
  EXPECT_THAT(Check(certificate, kTestNow - absl::Hours(48)),
              Refused("the farm's authority began on", "`timedatectl set-ntp true`"));
  EXPECT_THAT(Check(certificate, kTestNow + absl::Hours(24 * 8000)),
              Refused("the farm's authority ended on", "`kiln keys init"));
}

TEST_F(VerifyTest, RevokedCertificates) {
  const Certificate certificate = Issue({"alice", Role::kSubmit});
  ASSERT_OK_AND_ASSIGN(const Revocations revoked,
                       authority_.Revoke({{kSerial, kTestNow}}, 1, kTestNow));
  EXPECT_THAT(Verify(certificate, authority_.certificate(), revoked, kTestNow),
              Refused("the certificate of alice with the serial number 0123456789abcdef0123 was "
                      "revoked on 2027-01-15 08:00 UTC",
                      "`kiln keys issue alice --role submit`"));
  const Certificate other =
      TestCertificate(authority_, {"alice", Role::kSubmit}, 10, "0123456789abcdef0124");
  EXPECT_OK(Verify(other, authority_.certificate(), revoked, kTestNow));
}

TEST_F(VerifyTest, ForeignCertificates) {
  const Authority other = TestAuthority("bb");
  EXPECT_THAT(Check(TestCertificate(other, {"eve", Role::kAdmin})),
              Refused("the certificate of 'eve' was issued by 'Kiln farm bb', expected one of "
                      "'Kiln farm aa'",
                      "`kiln keys issue NAME --role ROLE`"));
  // An expired one is foreign as well, and so is one of an authority of the same name.
  EXPECT_THAT(Check(TestCertificate(other, {"eve", Role::kAdmin}), kTestNow + absl::Hours(999)),
              Refused("was issued by 'Kiln farm bb'", "kiln keys issue"));
  EXPECT_THAT(Check(TestCertificate(TestAuthority(), {"eve", Role::kAdmin})),
              Refused("the certificate of 'eve' was issued by 'Kiln farm aa'", "kiln keys issue"));
  EXPECT_THAT(Check(other.certificate()), Refused("was issued by", "kiln keys issue"));
  EXPECT_THAT(Check(authority_.certificate()),
              Refused("is that of the farm's authority", "kiln keys issue"));
}

// A member's key signs nobody.
TEST_F(VerifyTest, MembersAreNoAuthorities) {
  const PrivateKey key = *PrivateKey::Make();
  const Certificate alice = *authority_.Issue({"alice", Role::kAdmin}, key, 10, kSerial, kTestNow);
  const Certificate eve = Resigned(Issue({"eve", Role::kAdmin}), authority_, [&](X509* copy) {
    X509_set_issuer_name(copy, X509_get_subject_name(alice.handle()));
  });
  X509_sign(eve.handle(), key.handle(), EVP_sha256());
  EXPECT_THAT(Check(eve), Refused("was issued by 'alice'", "kiln keys issue"));
  EXPECT_THAT(Verify(eve, alice, none_, kTestNow), Refused("was issued by 'alice'", "issue"));
}

TEST_F(VerifyTest, SignedOnesThatNameNobody) {
  const Certificate alice = Issue({"alice", Role::kSubmit});
  const auto without = [&](int nid) {
    return Resigned(alice, authority_, [&](X509* copy) {
      X509_EXTENSION_free(X509_delete_ext(copy, X509_get_ext_by_NID(copy, nid, -1)));
    });
  };
  EXPECT_THAT(Check(without(NID_subject_alt_name)),
              Refused("the certificate of 'alice' names no member", "kiln keys issue"));
  EXPECT_THAT(Check(without(NID_ext_key_usage)),
              Refused("has uses that are not those of the role submit",
                      "`kiln keys issue alice --role submit`"));
  const Certificate renamed = Resigned(alice, authority_, [](X509* copy) {
    X509_NAME* const name = X509_get_subject_name(copy);
    X509_NAME_delete_entry(name, 0);
    X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>("bob"), -1, -1, 0);
  });
  EXPECT_THAT(Check(renamed),
              Refused("the certificate of 'bob' names kiln:submit/alice", "expected the same"));
  const auto with_names = [&](const char* names) {
    return Resigned(alice, authority_, [&](X509* copy) {
      X509_EXTENSION_free(
          X509_delete_ext(copy, X509_get_ext_by_NID(copy, NID_subject_alt_name, -1)));
      X509_EXTENSION* const extension =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
      X509_add_ext(copy, extension, -1);
      X509_EXTENSION_free(extension);
    });
  };
  EXPECT_THAT(Check(with_names("URI:kiln:submit/alice,URI:kiln:admin/alice")),
              Refused("names two members, kiln:submit/alice and kiln:admin/alice", "expected one"));
  EXPECT_THAT(Check(with_names("URI:kiln:root/alice")), Refused("names no member", "kiln keys"));
  EXPECT_THAT(Check(with_names("DNS:kiln:submit/alice")), Refused("names no member", "kiln keys"));
  EXPECT_THAT(Check(with_names("URI:kiln:work/alice")),
              Refused("has uses that are not those of the role work", "kiln keys issue"));
  EXPECT_OK(Check(with_names("URI:kiln:operate/alice,URI:https://example.org/")));
}

// Whatever bit of a certificate is changed, it no longer stands for anybody.
TEST_F(VerifyTest, EveryChangedByteIsNoticed) {
  const Certificate alice = Issue({"alice", Role::kRead});
  unsigned char* der = nullptr;
  const int size = i2d_X509(alice.handle(), &der);
  ASSERT_GT(size, 100);
  int parsed = 0;
  for (int i = 0; i < size; ++i) {
    for (const int bit : {0, 7}) {
      std::string changed(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
      changed[static_cast<size_t>(i)] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto* at = reinterpret_cast<const unsigned char*>(changed.data());
      X509* const read = d2i_X509(nullptr, &at, size);
      if (read == nullptr) continue;
      ++parsed;
      EXPECT_THAT(Check(Certificate::Own(read)), StatusIs(StatusCode::kUnauthenticated, testing::_))
          << "byte " << i << ", bit " << bit;
    }
  }
  OPENSSL_free(der);
  EXPECT_GT(parsed, 100) << "the changes must not all be refused by the parser";
}

}  // namespace
}  // namespace kiln
