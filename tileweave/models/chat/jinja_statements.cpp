// The grammar of statements, and what both parsers share.
#include <algorithm>
#include <array>
#include <initializer_list>

#include "tileweave/models/chat/jinja_parser.h"

namespace tileweave::jinja {
namespace {

constexpr int kMaxNestedParts = 100;  // brackets, operators and statements within each other

constexpr std::array kRefusedStatements = {"include", "import", "from",  "extends",   "block",
                                           "do",      "trans",  "debug", "autoescape"};

std::string names_of(std::initializer_list<std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) {
    text += (text.empty() ? "'" : " or '") + std::string(name) + "'";
  }
  return text;
}

class StatementParser {
 public:
  explicit StatementParser(std::vector<Token> tokens)
      : reader_(std::move(tokens)), expressions_(reader_) {}

  Body parse() {
    Body body = parse_body({});
    if (reader_.current().kind != TokenKind::kEnd) {
      reader_.refuse("a statement", describe(reader_.current()));
    }
    return body;
  }

 private:
  using Node = std::unique_ptr<Statement>;

  Node make(StatementKind kind, int line) const {
    auto node = std::make_unique<Statement>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  // Statements up to the tag that starts with one of `ends`, whose name is then the current token.
  // Without ends: to the end of the template.
  Body parse_body(std::initializer_list<std::string_view> ends) {
    const TokenReader::Nesting nesting(reader_);
    Body body;
    for (;;) {
      const Token& token = reader_.current();
      switch (token.kind) {
        case TokenKind::kData: {
          Node data = make(StatementKind::kData, token.line);
          data->text = reader_.take().text;
          body.push_back(std::move(data));
          break;
        }
        case TokenKind::kVariableBegin: {
          Node output = make(StatementKind::kOutput, reader_.take().line);
          output->expressions.push_back(expressions_.parse_tuple());
          reader_.expect(TokenKind::kVariableEnd, "'}}'");
          body.push_back(std::move(output));
          break;
        }
        case TokenKind::kBlockBegin:
          reader_.take();
          for (const std::string_view end : ends) {
            if (reader_.at_name(end)) return body;
          }
          body.push_back(parse_statement(ends));
          reader_.expect(TokenKind::kBlockEnd, "'%}'");
          break;
        default:
          if (ends.size() > 0) reader_.refuse(names_of(ends), describe(token));
          return body;
      }
    }
  }

  // The body after a tag's first line, the end of that line included.
  Body parse_block(std::initializer_list<std::string_view> ends) {
    reader_.skip_operator(":");
    reader_.expect(TokenKind::kBlockEnd, "'%}'");
    return parse_body(ends);
  }

  StatementPtr parse_statement(std::initializer_list<std::string_view> ends) {
    const Token& token = reader_.current();
    if (token.kind != TokenKind::kName) reader_.refuse("a statement", describe(token));
    const std::string& name = token.text;
    if (name == "if") return parse_if();
    if (name == "for") return parse_for();
    if (name == "set") return parse_set();
    if (name == "macro") return parse_macro();
    if (name == "call") return parse_call();
    if (name == "filter") return parse_filter();
    if (name == "with") return parse_with();
    if (name == "print") return parse_print();
    if (name == "generation") return parse_generation();
    if (name == "break" || name == "continue") return parse_jump();
    const bool is_known = std::any_of(kRefusedStatements.begin(), kRefusedStatements.end(),
                                      [&](const char* refused) { return name == refused; });
    if (is_known) reader_.refuse("only statements that are supported", "'" + name + "'");
    if (name.starts_with("end") || name == "else" || name == "elif") {
      reader_.refuse(ends.size() > 0 ? names_of(ends) : "an open statement before its end",
                     "'" + name + "'");
    }
    reader_.refuse("a statement", "'" + name + "'");
  }

  StatementPtr parse_if() {
    Node node = make(StatementKind::kIf, reader_.take().line);
    for (;;) {
      Branch branch;
      branch.condition = expressions_.parse_tuple(ExpressionParser::Conditionals::kNotHere);
      branch.body = parse_block({"elif", "else", "endif"});
      node->branches.push_back(std::move(branch));
      if (!reader_.skip_name("elif")) break;
    }
    if (reader_.skip_name("else")) node->body = parse_block({"endif"});
    reader_.expect_name("endif");
    return node;
  }

  StatementPtr parse_for() {
    Node node = make(StatementKind::kFor, reader_.take().line);
    node->targets.push_back(parse_target("in", Attributes::kNotHere));
    require_no_loop(node->targets.front());
    reader_.expect_name("in");
    node->expressions.push_back(
        expressions_.parse_tuple(ExpressionParser::Conditionals::kNotHere, "recursive"));
    if (reader_.skip_name("if")) node->condition = expressions_.parse_expression();
    if (reader_.at_name("recursive")) {
      reader_.refuse("loops that are not recursive", "'recursive'");
    }
    reader_.open_bodies.emplace_back();
    ++open_loops_;
    node->body = parse_block({"else", "endfor"});
    --open_loops_;
    node->mentions = reader_.open_bodies.back();
    reader_.open_bodies.pop_back();
    if (reader_.skip_name("else")) node->otherwise = parse_block({"endfor"});
    reader_.expect_name("endfor");
    return node;
  }

  StatementPtr parse_set() {
    const int line = reader_.take().line;
    Target target = parse_target({}, Attributes::kAllowed);
    if (reader_.skip_operator("=")) {
      Node node = make(StatementKind::kSet, line);
      node->targets.push_back(std::move(target));
      node->expressions.push_back(expressions_.parse_tuple());
      return node;
    }
    Node node = make(StatementKind::kSetBlock, line);
    node->targets.push_back(std::move(target));
    if (ExpressionPtr filters = expressions_.parse_block_filters()) {
      node->expressions.push_back(std::move(filters));
    }
    node->body = parse_closed_block({"endset"});
    reader_.expect_name("endset");
    return node;
  }

  StatementPtr parse_macro() {
    Node node = make(StatementKind::kMacro, reader_.take().line);
    node->name = parse_assignable_name();
    reader_.open_bodies.emplace_back();
    parse_parameters(*node);
    node->body = parse_closed_block({"endmacro"});
    close_mentions(*node);
    reader_.expect_name("endmacro");
    return node;
  }

  StatementPtr parse_call() {
    Node node = make(StatementKind::kCallBlock, reader_.take().line);
    node->name = "caller";
    reader_.open_bodies.emplace_back();
    if (reader_.at_operator("(")) parse_parameters(*node);
    ExpressionPtr call = expressions_.parse_expression();
    if (call->kind != ExpressionKind::kCall) reader_.refuse("a call after 'call'");
    node->expressions.push_back(std::move(call));
    node->body = parse_closed_block({"endcall"});
    close_mentions(*node);
    reader_.expect_name("endcall");
    return node;
  }

  StatementPtr parse_filter() {
    Node node = make(StatementKind::kFilterBlock, reader_.take().line);
    node->expressions.push_back(expressions_.parse_inline_block_filters());
    node->body = parse_closed_block({"endfilter"});
    reader_.expect_name("endfilter");
    return node;
  }

  StatementPtr parse_with() {
    Node node = make(StatementKind::kWith, reader_.take().line);
    while (reader_.current().kind != TokenKind::kBlockEnd) {
      if (!node->targets.empty()) reader_.expect_operator(",");
      node->targets.push_back(parse_target({}, Attributes::kNotHere, Tuples::kParenthesesOnly));
      reader_.expect_operator("=");
      node->expressions.push_back(expressions_.parse_expression());
    }
    node->body = parse_block({"endwith"});
    reader_.expect_name("endwith");
    return node;
  }

  StatementPtr parse_print() {
    Node node = make(StatementKind::kOutput, reader_.take().line);
    while (reader_.current().kind != TokenKind::kBlockEnd) {
      if (!node->expressions.empty()) reader_.expect_operator(",");
      node->expressions.push_back(expressions_.parse_expression());
    }
    return node;
  }

  StatementPtr parse_generation() {
    Node node = make(StatementKind::kGeneration, reader_.take().line);
    node->body = parse_closed_block({"endgeneration"});
    reader_.expect_name("endgeneration");
    return node;
  }

  StatementPtr parse_jump() {
    const Token token = reader_.take();
    if (open_loops_ == 0) {
      reader_.refuse_at(token.line, "'" + token.text + "' inside of a loop", "none around it");
    }
    return make(token.text == "break" ? StatementKind::kBreak : StatementKind::kContinue,
                token.line);
  }

  // A body that break and continue may not leave.
  Body parse_closed_block(std::initializer_list<std::string_view> ends) {
    const int loops_around = std::exchange(open_loops_, 0);
    Body body = parse_block(ends);
    open_loops_ = loops_around;
    return body;
  }

  // Names that a body mentions are mentioned by the bodies around it too.
  void close_mentions(Statement& node) {
    node.mentions = reader_.open_bodies.back();
    reader_.open_bodies.pop_back();
  }

  void parse_parameters(Statement& node) {
    reader_.expect_operator("(");
    bool has_default = false;
    while (!reader_.at_operator(")")) {
      if (!node.parameters.empty()) reader_.expect_operator(",");
      Parameter parameter;
      parameter.name = parse_assignable_name();
      for (const Parameter& other : node.parameters) {
        if (other.name == parameter.name) {
          reader_.refuse("each parameter once", "'" + parameter.name + "' twice");
        }
      }
      if (reader_.skip_operator("=")) {
        parameter.otherwise = expressions_.parse_expression();
        has_default = true;
      } else if (has_default) {
        reader_.refuse("parameters without a default before those with one",
                       "'" + parameter.name + "'");
      }
      node.parameters.push_back(std::move(parameter));
    }
    reader_.expect_operator(")");
  }

  enum class Attributes { kAllowed, kNotHere };
  enum class Tuples { kAllowed, kParenthesesOnly };

  Target parse_target(std::string_view end_name, Attributes attributes,
                      Tuples tuples = Tuples::kAllowed) {
    const TokenReader::Nesting nesting(reader_);
    Target first = parse_one_target(attributes);
    if (tuples == Tuples::kParenthesesOnly || !reader_.at_operator(",")) return first;
    Target tuple;
    tuple.kind = Target::Kind::kTuple;
    tuple.line = first.line;
    tuple.parts.push_back(std::move(first));
    while (reader_.skip_operator(",")) {
      const bool is_end = reader_.at_operator("=") || reader_.at_operator(")") ||
                          (!end_name.empty() && reader_.at_name(end_name)) ||
                          reader_.current().kind == TokenKind::kBlockEnd;
      if (is_end) break;
      tuple.parts.push_back(parse_one_target(attributes));
    }
    return tuple;
  }

  Target parse_one_target(Attributes attributes) {
    if (reader_.skip_operator("(")) {
      Target inside = parse_target({}, attributes);
      reader_.expect_operator(")");
      return inside;
    }
    Target target;
    target.line = reader_.current().line;
    target.name = parse_assignable_name();
    if (attributes == Attributes::kAllowed && reader_.skip_operator(".")) {
      target.kind = Target::Kind::kAttribute;
      target.attribute = reader_.expect(TokenKind::kName, "the name of an attribute").text;
      reader_.mention(target.name);
    }
    if (reader_.at_operator("[") || reader_.at_operator(".")) {
      reader_.refuse("assignments to names and attributes of namespaces",
                     describe(reader_.current()));
    }
    return target;
  }

  std::string parse_assignable_name() {
    const Token token = reader_.expect(TokenKind::kName, "a name");
    static constexpr std::array kConstants = {"true", "True", "false", "False", "none", "None"};
    for (const char* constant : kConstants) {
      if (token.text == constant) {
        reader_.refuse_at(token.line, "a name to assign to", "'" + token.text + "'");
      }
    }
    return token.text;
  }

  void require_no_loop(const Target& target) const {
    if (target.name == "loop") {
      reader_.refuse_at(target.line, "a loop's variable with another name", "'loop'");
    }
    for (const Target& part : target.parts) require_no_loop(part);
  }

  TokenReader reader_;
  ExpressionParser expressions_;
  int open_loops_ = 0;  // that break and continue can leave
};

}  // namespace

Token TokenReader::take() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenReader::at_name(std::string_view name) const {
  return current().kind == TokenKind::kName && current().text == name;
}

bool TokenReader::at_operator(std::string_view text) const {
  return current().kind == TokenKind::kOperator && current().text == text;
}

bool TokenReader::skip_name(std::string_view name) {
  const bool is_there = at_name(name);
  if (is_there) take();
  return is_there;
}

bool TokenReader::skip_operator(std::string_view text) {
  const bool is_there = at_operator(text);
  if (is_there) take();
  return is_there;
}

Token TokenReader::expect(TokenKind kind, const char* what) {
  if (current().kind != kind) refuse(what, describe(current()));
  return take();
}

void TokenReader::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse("'" + std::string(name) + "'", describe(current()));
}

void TokenReader::expect_operator(std::string_view text) {
  if (!skip_operator(text)) refuse("'" + std::string(text) + "'", describe(current()));
}

void TokenReader::refuse(std::string expected, std::string got) const {
  refuse_at(current().line, std::move(expected), std::move(got));
}

void TokenReader::refuse_at(int line, std::string expected, std::string got) const {
  throw SourceFault{line, Fault{std::move(expected), std::move(got)}};
}

void TokenReader::mention(std::string_view name) {
  for (Mentions& mentions : open_bodies) {
    mentions.loop = mentions.loop || name == "loop";
    mentions.caller = mentions.caller || name == "caller";
    mentions.varargs = mentions.varargs || name == "varargs";
    mentions.kwargs = mentions.kwargs || name == "kwargs";
  }
}

TokenReader::Nesting::Nesting(TokenReader& reader) : reader_(reader) {
  if (reader_.nesting_ >= kMaxNestedParts) {
    reader_.refuse("parts nested at most " + std::to_string(kMaxNestedParts) + " deep");
  }
  ++reader_.nesting_;
}

Body parse_template(const std::string& source) {
  return StatementParser(tokenize(source)).parse();
}

}  // namespace tileweave::jinja
