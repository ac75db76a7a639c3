// From tokens to statements and expressions: Jinja's grammar, without what chat templates never
// use.
//
// parse_template refuses, in a sentence with the line, everything that the renderer could not do:
// unknown statements, filters and tests, inheritance, imports, recursive loops, argument unpacking.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tileweave/models/chat/jinja_ast.h"
#include "tileweave/models/chat/jinja_lexer.h"

namespace tileweave::jinja {

/// Throws SourceFault.
Body parse_template(const std::string& source);

/// What the two parsers share: the tokens, the position, the bounds and the refusals.
class TokenReader {
 public:
  explicit TokenReader(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();

  bool at_name(std::string_view name) const;
  bool at_operator(std::string_view text) const;
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view text);
  Token expect(TokenKind kind, const char* what);
  void expect_name(std::string_view name);
  void expect_operator(std::string_view text);

  [[noreturn]] void refuse(std::string expected, std::string got = {}) const;
  [[noreturn]] void refuse_at(int line, std::string expected, std::string got = {}) const;

  /// Marks a special name in every body that is open.
  void mention(std::string_view name);
  std::vector<Mentions> open_bodies;

  /// Bounds the parser's own recursion.
  class Nesting {
   public:
    explicit Nesting(TokenReader& reader);
    ~Nesting() { --reader_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    TokenReader& reader_;
  };

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_ = 0;
};

/// Parses one expression at a time from the reader's position.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenReader& reader) : reader_(reader) {}

  enum class Conditionals { kAllowed, kNotHere };  // `for x in y if z`: the if is not the y's

  /// An expression, or a tuple without parentheses.
  ExpressionPtr parse_tuple(Conditionals conditionals = Conditionals::kAllowed,
                            std::string_view end_name = {});
  ExpressionPtr parse_expression(Conditionals conditionals = Conditionals::kAllowed);
  /// The filters at the reader's position, of the text of a block; null when there is none.
  ExpressionPtr parse_block_filters();
  /// The same without the first '|'.
  ExpressionPtr parse_inline_block_filters();

 private:
  using Node = std::unique_ptr<Expression>;

  Node make(ExpressionKind kind, int line) const;
  void add(Node& parent, ExpressionPtr child) const;

  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary();
  ExpressionPtr parse_unfiltered_unary();
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_parentheses();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr node);
  ExpressionPtr parse_attribute(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_call(ExpressionPtr node);
  ExpressionPtr parse_filter(ExpressionPtr node);
  ExpressionPtr parse_test(ExpressionPtr node);
  void parse_arguments(Node& node);
  std::string parse_dotted_name();

  TokenReader& reader_;
};

}  // namespace tileweave::jinja
