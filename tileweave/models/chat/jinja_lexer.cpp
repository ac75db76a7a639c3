#include "tileweave/models/chat/jinja_lexer.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "tileweave/models/chat/jinja_text.h"

namespace tileweave::jinja {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name_part(char c) {
  return is_name_start(c) || is_digit(c);
}

std::string with_unix_lines(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (at_ < rest_.size()) read_data();
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  // Data up to the next tag, and the tag.
  void read_data() {
    std::size_t tag = at_;
    for (;; ++tag) {
      tag = find_text(rest_, "{", tag);
      if (tag == kNowhere || tag + 1 >= rest_.size()) {
        push_data(rest_.substr(at_));
        advance_to(rest_.size());
        return;
      }
      const char second = rest_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
    }
    const std::string_view text = rest_.substr(at_, tag - at_);
    const char kind = rest_[tag + 1];
    std::size_t inside = tag + 2;
    char sign = '\0';
    if (inside < rest_.size() && (rest_[inside] == '-' || rest_[inside] == '+')) {
      sign = rest_[inside++];
    }
    const Strip strip = kind == '{' && sign != '-' ? Strip::kNothing : strip_of(sign);
    push_data(stripped(text, strip));
    advance_to(inside);
    if (kind == '#') {
      skip_comment();
    } else if (kind == '{') {
      read_tag(TokenKind::kVariableBegin, TokenKind::kVariableEnd, '}');
    } else if (!read_raw()) {
      read_tag(TokenKind::kBlockBegin, TokenKind::kBlockEnd, '%');
    }
  }

  enum class Strip { kNothing, kIndent, kAll };

  static Strip strip_of(char sign) {
    return sign == '-' ? Strip::kAll : sign == '+' ? Strip::kNothing : Strip::kIndent;
  }

  // What is left of the text before a tag.
  std::string_view stripped(std::string_view text, Strip strip) const {
    if (strip == Strip::kAll) return jinja::strip(text, Side::kRight);
    if (strip == Strip::kNothing) return text;
    const std::size_t last_line = text.rfind('\n');
    if (last_line == kNowhere && !is_line_start_) return text;
    const std::size_t indent = last_line == kNowhere ? 0 : last_line + 1;
    const bool is_blank = jinja::strip(text.substr(indent), Side::kLeft).empty();
    return is_blank ? text.substr(0, indent) : text;
  }

  void skip_comment() {
    const std::size_t end = find_text(rest_, "#}", at_);
    if (end == kNowhere) refuse("a comment that ends with '#}'");
    const char sign = end > at_ ? rest_[end - 1] : '\0';
    advance_to(end + 2);
    skip_behind_tag(sign, Trim::kNewline);
  }

  // {% raw %}...{% endraw %}; false: the tag is another one.
  bool read_raw() {
    std::size_t at = skip_space(at_);
    if (rest_.substr(at, 3) != "raw") return false;
    at = skip_space(at + 3);
    char sign = '\0';
    if (rest_.substr(at, 3) == "-%}") {
      sign = '-';
      at += 3;
    } else if (rest_.substr(at, 2) == "%}") {
      at += 2;
    } else {
      return false;
    }
    advance_to(at);
    skip_behind_tag(sign, Trim::kNothing);
    const std::size_t begin = at_;
    for (std::size_t tag = begin;; ++tag) {
      tag = find_text(rest_, "{%", tag);
      if (tag == kNowhere) refuse("a raw block that ends with '{% endraw %}'");
      std::size_t inside = tag + 2;
      const char begin_sign = inside < rest_.size() ? rest_[inside] : '\0';
      if (begin_sign == '-' || begin_sign == '+') ++inside;
      inside = skip_space(inside);
      if (rest_.substr(inside, 6) != "endraw") continue;
      inside = skip_space(inside + 6);
      char end_sign = '\0';
      if (inside < rest_.size() && (rest_[inside] == '-' || rest_[inside] == '+')) {
        end_sign = rest_[inside++];
      }
      if (rest_.substr(inside, 2) != "%}") continue;
      push_data(stripped(rest_.substr(begin, tag - begin), strip_of(begin_sign)));
      advance_to(inside + 2);
      skip_behind_tag(end_sign, Trim::kNewline);
      return true;
    }
  }

  void read_tag(TokenKind begin, TokenKind end, char end_char) {
    push(begin, "");
    std::vector<char> open;  // the brackets that wait for their partners
    for (;;) {
      advance_to(skip_space(at_));
      if (at_ >= rest_.size()) {
        push(TokenKind::kEnd, "");
        return;
      }
      if (open.empty() && read_tag_end(end, end_char)) return;
      const char c = rest_[at_];
      if (is_digit(c)) {
        read_number();
      } else if (is_name_start(c)) {
        read_name();
      } else if (c == '\'' || c == '"') {
        read_string(c);
      } else {
        read_operator(open);
      }
    }
  }

  bool read_tag_end(TokenKind end, char end_char) {
    std::size_t at = at_;
    const char sign = rest_[at];
    const bool has_sign = sign == '-' || (sign == '+' && end == TokenKind::kBlockEnd);
    if (has_sign) ++at;
    if (at + 1 >= rest_.size() || rest_[at] != end_char || rest_[at + 1] != '}') return false;
    push(end, "");
    advance_to(at + 2);
    skip_behind_tag(has_sign ? sign : '\0',
                    end == TokenKind::kBlockEnd ? Trim::kNewline : Trim::kNothing);
    return true;
  }

  enum class Trim { kNothing, kNewline };

  void skip_behind_tag(char sign, Trim trim) {
    if (sign == '-') {
      advance_to(skip_space(at_));
    } else if (sign != '+' && trim == Trim::kNewline && at_ < rest_.size() && rest_[at_] == '\n') {
      advance_to(at_ + 1);
    }
    is_line_start_ = rest_[at_ - 1] == '\n';
  }

  std::size_t skip_space(std::size_t at) const {
    while (at < rest_.size()) {
      std::size_t next = at;
      if (!is_space(next_code_point(rest_, next))) break;
      at = next;
    }
    return at;
  }

  // Digits with single '_' between them.
  std::size_t skip_digits(std::size_t at, int base) const {
    const auto is_one = [&](std::size_t i) {
      if (i >= rest_.size()) return false;
      const char c = static_cast<char>(rest_[i] | 0x20);
      return base == 16 ? is_digit(rest_[i]) || (c >= 'a' && c <= 'f')
                        : rest_[i] >= '0' && rest_[i] < '0' + base;
    };
    while (is_one(at) || (at < rest_.size() && rest_[at] == '_' && is_one(at + 1))) ++at;
    return at;
  }

  std::string without_underscores(std::size_t begin, std::size_t end) const {
    std::string digits(rest_.substr(begin, end - begin));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    return digits;
  }

  void read_number() {
    const bool follows_dot = at_ > 0 && rest_[at_ - 1] == '.';
    const std::size_t whole = skip_digits(at_, 10);
    std::size_t end = whole;
    if (!follows_dot) {
      if (end < rest_.size() && rest_[end] == '.' && end + 1 < rest_.size() &&
          is_digit(rest_[end + 1])) {
        end = skip_digits(end + 1, 10);
      }
      std::size_t exponent = end;
      if (exponent < rest_.size() && (rest_[exponent] | 0x20) == 'e') {
        ++exponent;
        if (exponent < rest_.size() && (rest_[exponent] == '-' || rest_[exponent] == '+')) {
          ++exponent;
        }
        if (exponent < rest_.size() && is_digit(rest_[exponent])) {
          end = skip_digits(exponent, 10);
        }
      }
    }
    if (end != whole) {
      push_float(end);
    } else {
      push_integer();
    }
  }

  void push_float(std::size_t end) {
    const std::string digits = without_underscores(at_, end);
    Token& token = push(TokenKind::kFloat, digits);
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), token.number);
    if (read.ec != std::errc()) refuse("floats within the range of doubles", digits);
    advance_to(end);
  }

  void push_integer() {
    int base = 10;
    std::size_t begin = at_;
    if (rest_[at_] == '0' && at_ + 1 < rest_.size()) {
      const char letter = static_cast<char>(rest_[at_ + 1] | 0x20);
      const int other = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
      if (other != 10 && skip_digits(at_ + 2, other) > at_ + 2) {
        base = other;
        begin = at_ + 2;
      }
    }
    const std::size_t end = skip_digits(begin, base);
    const std::string digits = without_underscores(begin, end);
    if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
        digits.find_first_not_of('0') != std::string::npos) {
      refuse("integers that do not start with 0", digits);
    }
    Token& token = push(TokenKind::kInteger, digits);
    const auto read =
        std::from_chars(digits.data(), digits.data() + digits.size(), token.integer, base);
    if (read.ec != std::errc()) refuse("integers that fit 64 bits", digits);
    advance_to(end);
  }

  void read_name() {
    std::size_t end = at_;
    while (end < rest_.size() && is_name_part(rest_[end])) ++end;
    push(TokenKind::kName, std::string(rest_.substr(at_, end - at_)));
    advance_to(end);
  }

  void read_string(char quote) {
    const int line = line_;
    std::size_t end = at_ + 1;
    while (end < rest_.size() && rest_[end] != quote) end += rest_[end] == '\\' ? 2 : 1;
    if (end >= rest_.size()) refuse("a string that ends with " + std::string(1, quote));
    std::string text = unescaped(rest_.substr(at_ + 1, end - at_ - 1));
    advance_to(end + 1);
    push(TokenKind::kString, std::move(text)).line = line;
  }

  std::string unescaped(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t slash = std::min(find_text(text, "\\", at), text.size());
      out += text.substr(at, slash - at);
      at = slash + 1;
      if (at < text.size()) at = unescape_one(text, at, out);
    }
    return out;
  }

  // `at` lies behind the backslash; returns where to go on.
  std::size_t unescape_one(std::string_view text, std::size_t at, std::string& out) {
    static constexpr std::string_view kLetters = "\\'\"abfnrtv";
    static constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
    const char c = text[at];
    if (const std::size_t i = kLetters.find(c); i != kNowhere) {
      out += kMeanings[i];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') return push_code(text, at, 3, 8, out);
    if (c == 'x') return push_code(text, at + 1, 2, 16, out);
    if (c == 'u') return push_code(text, at + 1, 4, 16, out);
    if (c == 'U') return push_code(text, at + 1, 8, 16, out);
    if (c == 'N') refuse("escapes of characters by their code", "'\\N'");
    out += '\\';
    return at;
  }

  // The code point written in up to (octal) or exactly `num_digits` digits.
  std::size_t push_code(std::string_view text, std::size_t at, std::size_t num_digits, int base,
                        std::string& out) {
    const char* begin = text.data() + at;
    const char* end = begin + std::min(num_digits, text.size() - at);
    std::uint32_t code = 0;
    const auto read = std::from_chars(begin, end, code, base);
    const auto used = static_cast<std::size_t>(read.ptr - begin);
    if (read.ec != std::errc() || (base == 16 && used != num_digits)) {
      refuse("escapes with all their digits",
             "'\\" + std::string(text.substr(at > 0 ? at - 1 : 0, 4)) + "'");
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      refuse("escapes of Unicode characters", "a code that is none");
    }
    append_utf8(out, code);
    return at + used;
  }

  void read_operator(std::vector<char>& open) {
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    const std::string_view two = rest_.substr(at_, 2);
    std::string text;
    if (std::find(std::begin(kTwo), std::end(kTwo), two) != std::end(kTwo)) {
      text = two;
    } else if (kOne.find(rest_[at_]) != kNowhere) {
      text = rest_.substr(at_, 1);
    } else {
      std::size_t end = at_;
      next_code_point(rest_, end);
      refuse("characters that an expression may hold",
             "'" + std::string(rest_.substr(at_, end - at_)) + "'");
    }
    const char c = text[0];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c) {
        refuse("brackets that match", "'" + text + "'");
      }
      open.pop_back();
    }
    push(TokenKind::kOperator, text);
    advance_to(at_ + text.size());
  }

  Token& push(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    return tokens_.emplace_back(std::move(token));
  }

  void push_data(std::string_view text) {
    if (!text.empty()) push(TokenKind::kData, std::string(text));
  }

  void advance_to(std::size_t end) {
    line_ += static_cast<int>(std::count(rest_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  [[noreturn]] void refuse(std::string expected, std::string got = {}) const {
    throw SourceFault{line_, Fault{std::move(expected), std::move(got)}};
  }

  std::string source_;
  std::string_view rest_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool is_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(const std::string& source) {
  return Lexer(with_unix_lines(source)).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text outside of tags";
    case TokenKind::kVariableBegin:
      return "'{{'";
    case TokenKind::kVariableEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace tileweave::jinja
