// A program that links the tokenizer keeps the C library's POSIX regular expressions: Oniguruma
// exports the same names (cmake/tileweave-text-libraries.cmake puts the C library first).
#include <dlfcn.h>
#include <regex.h>

#include <string>

#include <gtest/gtest.h>

namespace tileweave {
namespace {

template <class Function>
std::string library_of(Function* function) {
  Dl_info found{};
  return dladdr(reinterpret_cast<void*>(function), &found) != 0 ? found.dli_fname : "";
}

TEST(PosixRegexTest, NamesAreNotOnigurumas) {
  for (const std::string& library :
       {library_of(regcomp), library_of(regexec), library_of(regerror), library_of(regfree)}) {
    EXPECT_NE(library, "");
    EXPECT_EQ(library.find("onig"), std::string::npos) << library;
  }
}

}  // namespace
}  // namespace tileweave
