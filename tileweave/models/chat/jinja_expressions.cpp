// The grammar of expressions, from the loosest operator to the tightest.
#include <optional>

#include "tileweave/models/chat/jinja_builtins.h"
#include "tileweave/models/chat/jinja_parser.h"

namespace tileweave::jinja {
namespace {

// Deep enough for any template a person writes, shallow enough for the renderer's recursion.
constexpr int kMaxExpressionDepth = 200;

std::optional<Operator> comparison_at(const TokenReader& reader) {
  if (reader.current().kind == TokenKind::kName) {
    if (reader.at_name("in")) return Operator::kIn;
    const Token& next = reader.following();
    const bool is_not_in =
        reader.at_name("not") && next.kind == TokenKind::kName && next.text == "in";
    return is_not_in ? std::optional(Operator::kNotIn) : std::nullopt;
  }
  static constexpr Operator kOperators[] = {Operator::kEqual,   Operator::kNotEqual,
                                            Operator::kLess,    Operator::kLessEqual,
                                            Operator::kGreater, Operator::kGreaterEqual};
  for (const Operator op : kOperators) {
    if (reader.at_operator(spelling(op))) return op;
  }
  return std::nullopt;
}

template <std::size_t N>
std::optional<Operator> arithmetic_at(const TokenReader& reader, const Operator (&operators)[N]) {
  for (const Operator op : operators) {
    if (reader.at_operator(spelling(op))) return op;
  }
  return std::nullopt;
}

bool ends_tuple(const TokenReader& reader, std::string_view end_name) {
  const TokenKind kind = reader.current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd ||
         reader.at_operator(")") || (!end_name.empty() && reader.at_name(end_name));
}

}  // namespace

ExpressionParser::Node ExpressionParser::make(ExpressionKind kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

void ExpressionParser::add(Node& parent, ExpressionPtr child) const {
  if (child && child->depth >= parent->depth) parent->depth = child->depth + 1;
  parent->children.push_back(std::move(child));
  if (parent->depth > kMaxExpressionDepth) {
    reader_.refuse("expressions nested at most " + std::to_string(kMaxExpressionDepth) + " deep");
  }
}

ExpressionPtr ExpressionParser::parse_tuple(Conditionals conditionals, std::string_view end_name) {
  const int line = reader_.current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) reader_.expect_operator(",");
    if (ends_tuple(reader_, end_name)) break;
    items.push_back(parse_expression(conditionals));
    if (!reader_.at_operator(",")) break;
    is_tuple = true;
  }
  if (items.empty()) reader_.refuse("an expression", describe(reader_.current()));
  if (!is_tuple) return std::move(items.front());
  Node node = make(ExpressionKind::kTuple, line);
  for (ExpressionPtr& item : items) add(node, std::move(item));
  return node;
}

ExpressionPtr ExpressionParser::parse_expression(Conditionals conditionals) {
  const TokenReader::Nesting nesting(reader_);
  return conditionals == Conditionals::kAllowed ? parse_conditional() : parse_or();
}

ExpressionPtr ExpressionParser::parse_conditional() {
  ExpressionPtr left = parse_or();
  while (reader_.at_name("if")) {
    Node node = make(ExpressionKind::kConditional, reader_.take().line);
    add(node, std::move(left));
    add(node, parse_or());
    add(node, reader_.skip_name("else") ? parse_expression() : nullptr);
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (reader_.at_name("or")) {
    Node node = make(ExpressionKind::kOr, reader_.take().line);
    add(node, std::move(left));
    add(node, parse_and());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (reader_.at_name("and")) {
    Node node = make(ExpressionKind::kAnd, reader_.take().line);
    add(node, std::move(left));
    add(node, parse_not());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!reader_.at_name("not")) return parse_comparison();
  const TokenReader::Nesting nesting(reader_);
  Node node = make(ExpressionKind::kNot, reader_.take().line);
  add(node, parse_not());
  return node;
}

ExpressionPtr ExpressionParser::parse_comparison() {
  ExpressionPtr left = parse_sum();
  std::optional<Operator> op = comparison_at(reader_);
  if (!op) return left;
  Node node = make(ExpressionKind::kComparison, reader_.current().line);
  add(node, std::move(left));
  for (; op; op = comparison_at(reader_)) {
    reader_.take();
    if (*op == Operator::kNotIn) reader_.take();
    node->operators.push_back(*op);
    add(node, parse_sum());
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_sum() {
  static constexpr Operator kOperators[] = {Operator::kAdd, Operator::kSubtract};
  ExpressionPtr left = parse_concatenation();
  while (const auto op = arithmetic_at(reader_, kOperators)) {
    Node node = make(ExpressionKind::kArithmetic, reader_.take().line);
    node->operators.push_back(*op);
    add(node, std::move(left));
    add(node, parse_concatenation());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr left = parse_product();
  if (!reader_.at_operator("~")) return left;
  Node node = make(ExpressionKind::kConcatenation, reader_.current().line);
  add(node, std::move(left));
  while (reader_.skip_operator("~")) add(node, parse_product());
  return node;
}

ExpressionPtr ExpressionParser::parse_product() {
  static constexpr Operator kOperators[] = {Operator::kMultiply, Operator::kDivide,
                                            Operator::kFloorDivide, Operator::kModulo};
  ExpressionPtr left = parse_power();
  while (const auto op = arithmetic_at(reader_, kOperators)) {
    Node node = make(ExpressionKind::kArithmetic, reader_.take().line);
    node->operators.push_back(*op);
    add(node, std::move(left));
    add(node, parse_power());
    left = std::move(node);
  }
  return left;
}

// Jinja's ** binds its left operands first, unlike Python's.
ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (reader_.at_operator("**")) {
    Node node = make(ExpressionKind::kArithmetic, reader_.take().line);
    node->operators.push_back(Operator::kPower);
    add(node, std::move(left));
    add(node, parse_unary());
    left = std::move(node);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary() {
  return parse_filters_and_tests(parse_unfiltered_unary());
}

ExpressionPtr ExpressionParser::parse_unfiltered_unary() {
  if (!reader_.at_operator("-") && !reader_.at_operator("+")) return parse_postfix(parse_primary());
  const TokenReader::Nesting nesting(reader_);
  const Token sign = reader_.take();
  Node node =
      make(sign.text == "-" ? ExpressionKind::kNegative : ExpressionKind::kPositive, sign.line);
  add(node, parse_unfiltered_unary());
  return parse_postfix(std::move(node));
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token& token = reader_.current();
  Node node = make(ExpressionKind::kConstant, token.line);
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kString: {
      std::string text;
      while (reader_.current().kind == TokenKind::kString) text += reader_.take().text;
      node->constant = Value::text(std::move(text));
      return node;
    }
    case TokenKind::kInteger:
      node->constant = reader_.take().integer;
      return node;
    case TokenKind::kFloat:
      node->constant = reader_.take().number;
      return node;
    default:
      break;
  }
  if (reader_.at_operator("(")) return parse_parentheses();
  if (reader_.at_operator("[")) return parse_list();
  if (reader_.at_operator("{")) return parse_dict();
  reader_.refuse("an expression", describe(token));
}

ExpressionPtr ExpressionParser::parse_name() {
  const Token token = reader_.take();
  Node node = make(ExpressionKind::kConstant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->constant = true;
  } else if (token.text == "false" || token.text == "False") {
    node->constant = false;
  } else if (token.text == "none" || token.text == "None") {
    node->constant = Value::none();
  } else {
    node->kind = ExpressionKind::kName;
    node->name = token.text;
    reader_.mention(token.text);
  }
  return node;
}

ExpressionPtr ExpressionParser::parse_parentheses() {
  const int line = reader_.take().line;
  if (reader_.skip_operator(")")) return make(ExpressionKind::kTuple, line);
  ExpressionPtr inside = parse_tuple();
  reader_.expect_operator(")");
  return inside;
}

ExpressionPtr ExpressionParser::parse_list() {
  Node node = make(ExpressionKind::kList, reader_.take().line);
  while (!reader_.at_operator("]")) {
    if (!node->children.empty()) reader_.expect_operator(",");
    if (reader_.at_operator("]")) break;
    add(node, parse_expression());
  }
  reader_.expect_operator("]");
  return node;
}

ExpressionPtr ExpressionParser::parse_dict() {
  Node node = make(ExpressionKind::kDict, reader_.take().line);
  while (!reader_.at_operator("}")) {
    if (!node->children.empty()) reader_.expect_operator(",");
    if (reader_.at_operator("}")) break;
    add(node, parse_expression());
    reader_.expect_operator(":");
    add(node, parse_expression());
  }
  reader_.expect_operator("}");
  return node;
}

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr node) {
  for (;;) {
    if (reader_.at_operator(".")) {
      node = parse_attribute(std::move(node));
    } else if (reader_.at_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (reader_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filters_and_tests(ExpressionPtr node) {
  for (;;) {
    if (reader_.at_operator("|")) {
      node = parse_filter(std::move(node));
    } else if (reader_.at_name("is")) {
      node = parse_test(std::move(node));
    } else if (reader_.at_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr object) {
  const int line = reader_.take().line;
  if (reader_.current().kind == TokenKind::kInteger) {  // items.0
    Node node = make(ExpressionKind::kSubscript, line);
    add(node, std::move(object));
    Node index = make(ExpressionKind::kConstant, line);
    index->constant = reader_.take().integer;
    add(node, std::move(index));
    return node;
  }
  Node node = make(ExpressionKind::kAttribute, line);
  node->name = reader_.expect(TokenKind::kName, "the name of an attribute").text;
  add(node, std::move(object));
  return node;
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr object) {
  Node node = make(ExpressionKind::kSubscript, reader_.take().line);
  add(node, std::move(object));
  const auto bound = [&]() -> ExpressionPtr {
    const bool is_absent = reader_.at_operator(":") || reader_.at_operator("]");
    return is_absent ? nullptr : parse_expression();
  };
  if (reader_.at_operator("]")) reader_.refuse("a subscript", "'[]'");
  ExpressionPtr first = bound();
  const bool is_slice = reader_.at_operator(":");
  add(node, std::move(first));
  if (is_slice) {
    node->kind = ExpressionKind::kSlice;
    reader_.take();
    add(node, bound());
    add(node, reader_.skip_operator(":") ? bound() : nullptr);
  }
  if (reader_.at_operator(",")) reader_.refuse("one subscript in brackets", "several");
  reader_.expect_operator("]");
  return node;
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  Node node = make(ExpressionKind::kCall, reader_.current().line);
  if (callee->kind == ExpressionKind::kName && is_refused_function(callee->name)) {
    reader_.refuse("only functions that are supported", "'" + callee->name + "'");
  }
  add(node, std::move(callee));
  parse_arguments(node);
  return node;
}

void ExpressionParser::parse_arguments(Node& node) {
  reader_.expect_operator("(");
  bool needs_comma = false;
  while (!reader_.at_operator(")")) {
    if (needs_comma) {
      reader_.expect_operator(",");
      if (reader_.at_operator(")")) break;
    }
    needs_comma = true;
    if (reader_.at_operator("*") || reader_.at_operator("**")) {
      reader_.refuse("calls whose arguments are written out",
                     "'" + reader_.current().text + "' before an argument");
    }
    const Token& next = reader_.following();
    const bool is_named = reader_.current().kind == TokenKind::kName &&
                          next.kind == TokenKind::kOperator && next.text == "=";
    if (!is_named) {
      if (!node->named.empty()) reader_.refuse("positional arguments before named ones");
      add(node, parse_expression());
      continue;
    }
    const std::string name = reader_.take().text;
    reader_.take();
    for (const auto& other : node->named) {
      if (other.first == name) reader_.refuse("each argument once", "'" + name + "' twice");
    }
    ExpressionPtr value = parse_expression();
    if (value->depth >= node->depth) node->depth = value->depth + 1;
    node->named.emplace_back(name, std::move(value));
  }
  reader_.expect_operator(")");
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = reader_.expect(TokenKind::kName, "a name").text;
  while (reader_.skip_operator(".")) {
    name += "." + reader_.expect(TokenKind::kName, "a name").text;
  }
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  const int line = reader_.take().line;
  Node node = make(ExpressionKind::kFilter, line);
  node->name = parse_dotted_name();
  if (!is_filter(node->name)) {
    reader_.refuse_at(line, "only filters that are supported", "'" + node->name + "'");
  }
  add(node, std::move(input));
  if (reader_.at_operator("(")) parse_arguments(node);
  return node;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const int line = reader_.take().line;
  const bool is_negated = reader_.skip_name("not");
  Node node = make(ExpressionKind::kTest, line);
  node->name = parse_dotted_name();
  if (!is_test(node->name)) {
    reader_.refuse_at(line, "only tests that are supported", "'" + node->name + "'");
  }
  add(node, std::move(input));
  const TokenKind kind = reader_.current().kind;
  const bool is_word = kind == TokenKind::kName;
  const bool starts_argument =
      kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
      reader_.at_operator("[") || reader_.at_operator("{") ||
      (is_word && !reader_.at_name("else") && !reader_.at_name("or") && !reader_.at_name("and"));
  if (reader_.at_operator("(")) {
    parse_arguments(node);
  } else if (starts_argument) {
    if (reader_.at_name("is")) reader_.refuse("one test after 'is'", "'is' again");
    add(node, parse_postfix(parse_primary()));
  }
  if (!is_negated) return node;
  Node negation = make(ExpressionKind::kNot, line);
  add(negation, std::move(node));
  return negation;
}

ExpressionPtr ExpressionParser::parse_block_filters() {
  if (!reader_.at_operator("|")) return nullptr;
  ExpressionPtr node = make(ExpressionKind::kBlockText, reader_.current().line);
  while (reader_.at_operator("|")) node = parse_filter(std::move(node));
  return node;
}

ExpressionPtr ExpressionParser::parse_inline_block_filters() {
  // The name of the first filter follows the word 'filter' as others follow a '|'.
  const int line = reader_.current().line;
  Node first = make(ExpressionKind::kFilter, line);
  first->name = parse_dotted_name();
  if (!is_filter(first->name)) {
    reader_.refuse_at(line, "only filters that are supported", "'" + first->name + "'");
  }
  add(first, make(ExpressionKind::kBlockText, line));
  if (reader_.at_operator("(")) parse_arguments(first);
  ExpressionPtr node = std::move(first);
  while (reader_.at_operator("|")) node = parse_filter(std::move(node));
  return node;
}

}  // namespace tileweave::jinja
