#include "base/file/message_file.h"

#include "base/file/file.h"
#include "base/status_testing.h"
#include "base/testing/echo.grpc.pb.h"

namespace kiln {
namespace {

using base::testing::EchoMessage;
using testing::AllOf;
using testing::HasSubstr;

class MessageFileTest : public testing::Test {
 protected:
  StatusOr<EchoMessage> Read(const std::string& name, std::string_view content) {
    KILN_RETURN_IF_ERROR(WriteFile(folder_.Join(name), content));
    EchoMessage message;
    KILN_RETURN_IF_ERROR(ReadMessageFile(folder_.Join(name), message));
    return message;
  }
  TempDir folder_ = *TempDir::Make("message-file");
};

EchoMessage Echo() {
  EchoMessage message;
  message.set_text("a\n\xc3\xbc");
  message.set_fail_with(3);
  return message;
}

TEST_F(MessageFileTest, ReadsTheTextFormByItsName) {
  for (const char* name : {"a.txtpb", "a.textproto", "a.pbtxt", "a.txt"}) {
    ASSERT_OK_AND_ASSIGN(const EchoMessage read, Read(name, Echo().DebugString()));
    EXPECT_EQ(read.SerializeAsString(), Echo().SerializeAsString()) << name;
  }
}

TEST_F(MessageFileTest, ReadsTheBinaryForm) {
  ASSERT_OK_AND_ASSIGN(const EchoMessage read, Read("a.pb", Echo().SerializeAsString()));
  EXPECT_EQ(read.SerializeAsString(), Echo().SerializeAsString());
}

TEST_F(MessageFileTest, PrintsWhatItReads) {
  testing::internal::CaptureStdout();
  PrintMessage(Echo());
  ASSERT_OK_AND_ASSIGN(const EchoMessage read,
                       Read("a.txtpb", testing::internal::GetCapturedStdout()));
  EXPECT_EQ(read.SerializeAsString(), Echo().SerializeAsString());
}

TEST_F(MessageFileTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Read("bad.txtpb", "text: \"x\"\nnonsense: 2\nmore: 3\n"),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("bad.txtpb: line 2, column 9: "), HasSubstr("nonsense"))));
  EXPECT_THAT(Read("bad.pb", "\xff\xff\xff"),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("bad.pb: not a EchoMessage in binary form; name text *.txtpb")));
  EchoMessage message;
  EXPECT_THAT(ReadMessageFile(folder_.Join("none.pb"), message),
              StatusIs(StatusCode::kNotFound, HasSubstr("none.pb")));
}

}  // namespace
}  // namespace kiln
