// A template's source cut into tokens: data, tags and what is inside them.
//
// White space control follows Jinja with trim_blocks and lstrip_blocks, as transformers sets them:
// a tag's own line disappears, `-` strips up to other text, `+` keeps. Line ends become \n, one at
// the end of the source is dropped. Comments vanish here, raw blocks become data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tileweave/models/chat/jinja_fault.h"

namespace tileweave::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // text: unescaped
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 1;
  std::int64_t integer = 0;
  double number = 0;
};

/// A Fault of the source, and the line it was found in.
struct SourceFault {
  int line;
  Fault fault;
};

/// The last token is kEnd. Throws SourceFault.
std::vector<Token> tokenize(const std::string& source);

/// How errors call a token: "'endif'", "the end of the template".
std::string describe(const Token& token);

}  // namespace tileweave::jinja
