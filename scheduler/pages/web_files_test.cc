#include "scheduler/pages/web_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(WebFilesTest, HasThePagesWithTheirTypes) {
  const WebFile* const page = FindWebFile("index.html");
  ASSERT_NE(page, nullptr);
  EXPECT_TRUE(page->text.starts_with("<!doctype html>"));
  EXPECT_EQ(ContentTypeOf("index.html"), "text/html; charset=utf-8");
  EXPECT_EQ(ContentTypeOf("app.js"), "text/javascript; charset=utf-8");
  EXPECT_EQ(FindWebFile("../BUILD.bazel"), nullptr);
  EXPECT_EQ(FindWebFile(""), nullptr);
}

// The port's headers allow scripts and styles of their own files alone, so these would not work.
TEST(WebFilesTest, HasNoScriptOrStyleWithinThePage) {
  const std::string page(FindWebFile("index.html")->text);
  EXPECT_THAT(page, Not(HasSubstr("<style")));
  EXPECT_THAT(page, Not(HasSubstr(" style=")));
  EXPECT_THAT(page, Not(HasSubstr("<script>")));
  EXPECT_THAT(page, Not(HasSubstr(" onclick=")));
}

// A text that goes into a page as HTML may be a stranger's program.
TEST(WebFilesTest, PutsTextsInAsTextsAndLoadsNothingFromElsewhere) {
  for (const WebFile& file : WebFiles()) {
    const std::string text(file.text);
    SCOPED_TRACE(file.name);
    EXPECT_FALSE(text.empty());
    for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                            "eval(", "new Function", "DOMParser", "createContextualFragment"}) {
      EXPECT_THAT(text, Not(HasSubstr(way)));
    }
    EXPECT_THAT(text, Not(HasSubstr("https://")));
    EXPECT_THAT(text, Not(HasSubstr("src=\"http")));
  }
}

// Each module that a module imports is there.
TEST(WebFilesTest, ImportsModulesThatAreThere) {
  int imports = 0;
  for (const WebFile& file : WebFiles()) {
    const std::string_view from = "from \"/web/";
    for (size_t at = file.text.find(from); at != std::string_view::npos;
         at = file.text.find(from, at + 1)) {
      const size_t begin = at + from.size();
      const std::string_view name = file.text.substr(begin, file.text.find('"', begin) - begin);
      EXPECT_NE(FindWebFile(name), nullptr) << file.name << " imports " << name;
      ++imports;
    }
  }
  EXPECT_GT(imports, 20);
}

}  // namespace
}  // namespace kiln::scheduler
