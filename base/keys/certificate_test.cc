// Certificates, private keys and lists of revocations as texts, good ones and hostile ones.
#include "base/keys/certificate.h"

#include <openssl/pem.h>

#include <string>
#include <utility>
#include <vector>

#include "base/keys/keys_testing.h"
#include "base/keys/openssl.h"
#include "base/keys/private_key.h"
#include "base/keys/revocations.h"
#include "base/numbers/rng.h"
#include "base/status_testing.h"

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSerial[] = "00000000000000000001";

auto Damaged(const std::string& where) {
  return StatusIs(StatusCode::kDataLoss,
                  AllOf(HasSubstr(where + " holds no "), HasSubstr("copy the f")));
}

std::string KeyText(EVP_PKEY* key, const EVP_CIPHER* cipher = nullptr) {
  const openssl::Bio bio(BIO_new(BIO_s_mem()));
  char word[] = "pass";
  PEM_write_bio_PKCS8PrivateKey(bio.get(), key, cipher, cipher == nullptr ? nullptr : word,
                                cipher == nullptr ? 0 : 4, nullptr, nullptr);
  return openssl::Written(bio.get());
}

class CertificateTest : public testing::Test {
 protected:
  const Authority authority_ = TestAuthority();
  const Certificate certificate_ = TestCertificate(authority_, {"alice", Role::kSubmit});
};

TEST_F(CertificateTest, SaysWhatItWasMadeOf) {
  ASSERT_OK_AND_ASSIGN(const Certificate read, Certificate::Parse(certificate_.ToPem(), "a.pem"));
  EXPECT_TRUE(read.Equals(certificate_));
  EXPECT_FALSE(read.Equals(authority_.certificate()));
  EXPECT_EQ(read.CommonName(), "alice");
  EXPECT_EQ(read.IssuerName(), "Kiln farm aa");
  EXPECT_EQ(read.Serial(), kSerial);
  EXPECT_EQ(read.begins(), kTestNow - kClockTolerance);
  EXPECT_EQ(read.ends(), kTestNow + absl::Hours(240));
  EXPECT_EQ(*read.GetMember(), (Member{"alice", Role::kSubmit}));
  EXPECT_THAT(
      authority_.certificate().GetMember(),
      StatusIs(StatusCode::kInvalidArgument,
               AllOf(HasSubstr("'Kiln farm aa' names no member"), HasSubstr("kiln keys issue"))));
  EXPECT_EQ(UtcText(absl::FromUnixSeconds(0)), "1970-01-01 00:00 UTC");
}

TEST_F(CertificateTest, TheFirstCertificateAmongOtherBlocksCounts) {
  const std::string key = PrivateKey::Make()->ToPem();
  ASSERT_OK_AND_ASSIGN(
      const Certificate read,
      Certificate::Parse(key + certificate_.ToPem() + authority_.certificate().ToPem(), "a.pem"));
  EXPECT_TRUE(read.Equals(certificate_));
}

TEST_F(CertificateTest, NamesOfStrangersStayOnOneLine) {
  const Certificate odd = Resigned(certificate_, authority_, [](X509* copy) {
    X509_NAME* const name = X509_get_subject_name(copy);
    X509_NAME_delete_entry(name, 0);
    const std::string text = "a\n\x1b[2Jb";
    X509_NAME_add_entry_by_NID(name, NID_commonName, V_ASN1_UTF8STRING,
                               reinterpret_cast<const unsigned char*>(text.data()),
                               static_cast<int>(text.size()), -1, 0);
  });
  EXPECT_THAT(odd.CommonName(), AllOf(Not(HasSubstr("\n")), Not(HasSubstr("\x1b"))));
}

TEST_F(CertificateTest, KeysAreReadBackAndMatchTheirCertificate) {
  ASSERT_OK_AND_ASSIGN(const PrivateKey read,
                       PrivateKey::Parse(authority_.key().ToPem(), "key.pem"));
  EXPECT_TRUE(read.Matches(authority_.certificate()));
  EXPECT_FALSE(read.Matches(certificate_));
  EXPECT_NE(PrivateKey::Make()->ToPem(), PrivateKey::Make()->ToPem());
}

TEST_F(CertificateTest, KeysOfOtherKindsAreRefused) {
  const openssl::Key other_curve(EVP_EC_gen("P-384"));
  const openssl::Key edwards(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  for (EVP_PKEY* key : {other_curve.get(), edwards.get()}) {
    EXPECT_THAT(PrivateKey::Parse(KeyText(key), "key.pem"),
                StatusIs(StatusCode::kFailedPrecondition, HasSubstr("expected one of P-256")));
  }
  // An encrypted key asks nobody for its pass phrase.
  const PrivateKey ours = *PrivateKey::Make();
  EXPECT_THAT(PrivateKey::Parse(KeyText(ours.handle(), EVP_aes_128_cbc()), "key.pem"),
              Damaged("key.pem"));
}

TEST_F(CertificateTest, RevocationsAreReadBack) {
  const Revocations::Entries entries = {{kSerial, kTestNow},
                                        {"000000000000000000ff", kTestNow - absl::Hours(1)}};
  ASSERT_OK_AND_ASSIGN(const Revocations made, authority_.Revoke(entries, 7, kTestNow));
  ASSERT_OK_AND_ASSIGN(const Revocations read,
                       Revocations::Parse(made.ToPem(), authority_.certificate(), "r.pem"));
  EXPECT_EQ(read.entries(), entries);
  EXPECT_EQ(read.number(), 7);
  EXPECT_EQ(read.RevokedAt(kSerial), kTestNow);
  EXPECT_EQ(read.RevokedAt("0123"), std::nullopt);
  ASSERT_OK_AND_ASSIGN(const Revocations none, authority_.Revoke({}, 0, kTestNow));
  EXPECT_TRUE(none.entries().empty());
  EXPECT_EQ(none.number(), 0);
}

TEST_F(CertificateTest, RevocationsOfAnotherAuthorityAreRefused) {
  // The other authority has the same name.
  const Authority other = TestAuthority();
  ASSERT_OK_AND_ASSIGN(const Revocations list, other.Revoke({}, 1, kTestNow));
  EXPECT_THAT(Revocations::Parse(list.ToPem(), authority_.certificate(), "r.pem"),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("r.pem is not signed by the authority 'Kiln farm aa'"),
                             HasSubstr("copy the file anew"))));
}

// A parser must survive every text, and say no more of it than its place.
TEST_F(CertificateTest, HostileTexts) {
  const std::string key = authority_.key().ToPem();
  const std::string list = authority_.Revoke({{kSerial, kTestNow}}, 1, kTestNow)->ToPem();
  std::vector<std::string> texts = {
      "",
      "\n",
      std::string(100, '\0'),
      "-----BEGIN CERTIFICATE-----",
      "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
      "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n",
      "-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n",
      "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n",
      std::string(3 << 20, 'A'),
      "\xff\xfe" + key};
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    std::string text(static_cast<size_t>(UniformInt(rng, 600)), '\0');
    for (char& c : text) c = static_cast<char>(rng());
    texts.push_back(std::move(text));
  }
  for (const std::string& text : texts) {
    EXPECT_THAT(Certificate::Parse(text, "c.pem"), Damaged("c.pem"));
    EXPECT_THAT(PrivateKey::Parse(text, "k.pem"), Damaged("k.pem"));
    EXPECT_THAT(Revocations::Parse(text, authority_.certificate(), "r.pem"), Damaged("r.pem"));
  }
  // One kind of text is not read as another.
  EXPECT_THAT(Certificate::Parse(key, "c.pem"), Damaged("c.pem"));
  EXPECT_THAT(Certificate::Parse(list, "c.pem"), Damaged("c.pem"));
  EXPECT_THAT(PrivateKey::Parse(certificate_.ToPem(), "k.pem"), Damaged("k.pem"));
  EXPECT_THAT(Revocations::Parse(certificate_.ToPem(), authority_.certificate(), "r.pem"),
              Damaged("r.pem"));
}

TEST_F(CertificateTest, TruncatedTexts) {
  const std::string key = authority_.key().ToPem(), pem = certificate_.ToPem();
  const std::string list = authority_.Revoke({}, 1, kTestNow)->ToPem();
  constexpr size_t kLineEnd = 1;
  for (size_t size = 0; size + kLineEnd < pem.size(); ++size) {
    EXPECT_THAT(Certificate::Parse(pem.substr(0, size), "c.pem"), Damaged("c.pem")) << size;
  }
  for (size_t size = 0; size + kLineEnd < list.size(); ++size) {
    EXPECT_THAT(Revocations::Parse(list.substr(0, size), authority_.certificate(), "r.pem"),
                Damaged("r.pem"))
        << size;
  }
  // No message holds a part of the key.
  const std::string secret = key.substr(key.find('\n') + 1, 20);
  for (size_t size = 0; size + kLineEnd < key.size(); ++size) {
    const auto read = PrivateKey::Parse(key.substr(0, size), "k.pem");
    EXPECT_THAT(read, Damaged("k.pem")) << size;
    EXPECT_THAT(Message(read.status()), Not(HasSubstr(secret)));
  }
}

TEST_F(CertificateTest, ChangedTextsAreReadOrRefused) {
  const std::string list = authority_.Revoke({{kSerial, kTestNow}}, 1, kTestNow)->ToPem();
  const std::string texts[] = {authority_.key().ToPem(), certificate_.ToPem(), list};
  Rng rng(2);
  for (int i = 0; i < 3000; ++i) {
    std::string text = texts[i % 3];
    for (int64_t changes = UniformIn(rng, 1, 4); changes > 0; --changes) {
      text[static_cast<size_t>(UniformInt(rng, std::ssize(text)))] = static_cast<char>(rng());
    }
    if (const auto read = Certificate::Parse(text, "c.pem"); read.ok()) {
      read->GetMember().IgnoreError();
      read->CommonName();
      read->Serial();
      EXPECT_LE(read->begins(), absl::InfiniteFuture());
    }
    PrivateKey::Parse(text, "k.pem").IgnoreError();
    const auto revoked = Revocations::Parse(text, authority_.certificate(), "r.pem");
    if (revoked.ok()) {
      EXPECT_EQ(revoked->entries().size(), 1u) << "what is signed has not changed";
    }
  }
}

}  // namespace
}  // namespace kiln
