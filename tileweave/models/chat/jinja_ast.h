// What the parser makes of a template: statements that hold expressions.
//
// Trees are immutable once parsed. Every expression knows how deep it nests; the parser bounds that
// and the nesting of statements, so that rendering and destruction recurse safely.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tileweave/models/chat/jinja_operators.h"
#include "tileweave/models/chat/jinja_value.h"

namespace tileweave::jinja {

enum class ExpressionKind {
  kConstant,       // constant
  kName,           // name
  kList,           // children
  kTuple,          // children
  kDict,           // children: key, value, key, value...
  kAttribute,      // children[0] . name
  kSubscript,      // children[0] [ children[1] ]
  kSlice,          // children[0] [ children[1] : children[2] : children[3] ], absent ones are null
  kCall,           // children[0] ( children[1..], named )
  kFilter,         // children[0] | name ( children[1..], named )
  kTest,           // children[0] is name ( children[1..], named )
  kNegative,       // - children[0]
  kPositive,       // + children[0]
  kNot,            // not children[0]
  kAnd,            // children[0] and children[1]
  kOr,             // children[0] or children[1]
  kArithmetic,     // children[0] operators[0] children[1]
  kComparison,     // children[0] operators[0] children[1] operators[1] children[2]...
  kConcatenation,  // children ~ children...
  kConditional,    // children[0] if children[1] else children[2], which may be null
  kBlockText,      // the text of the filter or set block that the expression belongs to
};

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Expression {
  ExpressionKind kind = ExpressionKind::kConstant;
  int line = 1;
  int depth = 1;
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> children;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<Operator> operators;
};

enum class StatementKind {
  kData,         // text
  kOutput,       // expressions, each written
  kIf,           // branches; body is the else
  kFor,          // target in expressions[0] if condition: body, otherwise
  kSet,          // target = expressions[0]
  kSetBlock,     // target = body, through expressions[0] if there is one
  kFilterBlock,  // body through expressions[0]
  kMacro,        // name(parameters): body
  kCallBlock,    // expressions[0] is called with caller(parameters): body
  kWith,         // targets = expressions: body
  kGeneration,   // body, in a scope of its own
  kBreak,
  kContinue,
};

struct Statement;
using StatementPtr = std::unique_ptr<const Statement>;
using Body = std::vector<StatementPtr>;

/// Where an assignment goes: a name, an attribute of a namespace, or a tuple of them.
struct Target {
  enum class Kind { kName, kAttribute, kTuple } kind = Kind::kName;
  int line = 1;
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
};

struct Branch {
  ExpressionPtr condition;
  Body body;
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // the default, or null
};

/// Which of Jinja's special names a body mentions.
struct Mentions {
  bool loop = false;
  bool caller = false;
  bool varargs = false;
  bool kwargs = false;
};

struct Statement {
  StatementKind kind = StatementKind::kData;
  int line = 1;
  std::string name;
  std::string text;
  std::vector<ExpressionPtr> expressions;
  ExpressionPtr condition;
  std::vector<Target> targets;
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  Body body;
  Body otherwise;
  Mentions mentions;
};

}  // namespace tileweave::jinja
