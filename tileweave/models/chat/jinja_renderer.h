// Runs a parsed template once.
//
// Variables of the rendering lie in the outermost scope; for, with, macro and block statements open
// scopes below it, as in Jinja: what they set is gone after them. One Renderer renders once. Throws
// Fault; line() then is the line it belongs to.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tileweave/models/chat/jinja_ast.h"
#include "tileweave/models/chat/jinja_builtins.h"

namespace tileweave::jinja {

struct Scope {
  explicit Scope(Scope* outer) : parent(outer) {}
  Scope* parent;
  bool is_kept = false;  // a macro refers to it
  std::unordered_map<std::string_view, Value> values;
};

struct RenderSettings {
  std::uint64_t work;
  std::size_t output_bytes;
  std::chrono::local_seconds now;
};

class Renderer {
 public:
  /// `variables` has strings as its keys and outlives the renderer.
  Renderer(const RenderSettings& settings, const Dict& variables);

  std::string render(const Body& body);
  int line() const { return line_; }

 private:
  enum class Flow { kOn, kBreak, kContinue };
  // A scope while it is open. It outlives that only if a macro was defined in it.
  class OpenScope {
   public:
    OpenScope(Renderer& renderer, Scope* parent)
        : renderer_(renderer), before_(renderer.scope_), own_(std::make_unique<Scope>(parent)) {
      renderer_.scope_ = own_.get();
    }
    ~OpenScope() {
      renderer_.scope_ = before_;
      if (own_->is_kept) renderer_.kept_scopes_.push_back(std::move(own_));
    }
    OpenScope(const OpenScope&) = delete;
    OpenScope& operator=(const OpenScope&) = delete;

   private:
    Renderer& renderer_;
    Scope* before_;
    std::unique_ptr<Scope> own_;
  };

  // Statements.
  Flow run(const Body& body);
  Flow run(const Statement& statement);
  Flow run_if(const Statement& statement);
  Flow run_for(const Statement& statement);
  Flow run_in_scope(const Body& body);
  void run_set(const Statement& statement);
  void run_set_block(const Statement& statement);
  void run_filter_block(const Statement& statement);
  Flow run_with(const Statement& statement);
  void run_call_block(const Statement& statement);
  void define_macro(const Statement& statement);
  void assign(const Target& target, const Value& value);
  void write(std::string_view text);
  void write(const Value& value);
  std::string capture(const Body& body);
  Value filtered(const Statement& statement, std::string text);

  // Expressions.
  Value evaluate(const Expression& expression);
  Value evaluate_name(const Expression& expression);
  Value evaluate_items(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_comparison(const Expression& expression);
  Value evaluate_concatenation(const Expression& expression);
  Value evaluate_conditional(const Expression& expression);
  Value evaluate_operator(const Expression& expression);
  Value evaluate_filter(const Expression& expression);
  Value evaluate_call(const Expression& expression, const Value* caller);
  Arguments evaluate_arguments(const Expression& expression);
  const Value* find_variable(std::string_view name) const;

  // Calls.
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const Callable& macro, const Arguments& arguments);
  void bind_parameters(const Statement& macro, const Arguments& arguments);
  void bind_extra(const Statement& macro, const Arguments& arguments);
  Value macro_value(const Statement& statement, std::string name);

  Environment environment_;
  std::size_t output_bytes_;
  int line_ = 1;
  Scope root_;
  Scope* scope_ = &root_;
  std::vector<std::unique_ptr<Scope>> kept_scopes_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::string* output_ = nullptr;
  const Value* block_text_ = nullptr;
};

}  // namespace tileweave::jinja
